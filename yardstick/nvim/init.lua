-- How a person would set Neovim up for the contract: Prism's plugin, and the language servers that are on PATH.
local here = vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h')
vim.cmd('filetype plugin on')
dofile(here .. '/../../editors/nvim/prism.lua')

-- One that is asked for errors, one that tells them by itself.
local servers = {
  typescript = { name = 'tsc', cmd = { 'tsc', '--lsp', '--stdio' }, mark = 'tsconfig.json' },
  python = { name = 'pyright', cmd = { 'pyright-langserver', '--stdio' }, mark = 'pyproject.toml' },
}

-- One server for each project. vim.lsp.start does this from 0.8 on.
local clients = {}
vim.api.nvim_create_autocmd('FileType', {
  pattern = vim.tbl_keys(servers),
  callback = function(event)
    local server = servers[event.match]
    local file = vim.api.nvim_buf_get_name(event.buf)
    local mark = vim.fn.findfile(server.mark, vim.fn.fnamemodify(file, ':h') .. ';')
    if mark == '' or vim.fn.executable(server.cmd[1]) == 0 then return end
    local root = vim.fn.fnamemodify(mark, ':p:h')
    local capabilities = vim.lsp.protocol.make_client_capabilities()
    -- 0.7 to 0.9 do not ask for errors themselves and do not say that it can be done; the plugin does both.
    if server.name == 'tsc' then
      capabilities.textDocument.diagnostic = capabilities.textDocument.diagnostic or { dynamicRegistration = false }
    end
    local config = {
      name = server.name,
      cmd = server.cmd,
      root_dir = root,
      capabilities = capabilities,
      workspace_folders = { { uri = vim.uri_from_fname(root), name = root } },
    }
    -- What a callback returns decides whether it stays.
    if vim.lsp.start then
      vim.lsp.start(config, { bufnr = event.buf })
    else
      clients[root] = clients[root] or vim.lsp.start_client(config)
      vim.lsp.buf_attach_client(event.buf, clients[root])
    end
  end,
})
