-- How a person would set Neovim up for the contract: Prism's plugin, and the language servers that are on PATH.
local here = vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h')
vim.cmd('filetype plugin on')
vim.opt.runtimepath:prepend(vim.fs.normalize(here .. '/../../editors/nvim'))

-- One that is asked for errors, one that tells them by itself.
local servers = {
  typescript = { name = 'tsc', cmd = { 'tsc', '--lsp', '--stdio' }, mark = 'tsconfig.json' },
  python = { name = 'pyright', cmd = { 'pyright-langserver', '--stdio' }, mark = 'pyproject.toml' },
}

-- One server for each project.
vim.api.nvim_create_autocmd('FileType', {
  pattern = vim.tbl_keys(servers),
  callback = function(event)
    local server = servers[event.match]
    local root = vim.fs.root(event.buf, server.mark)
    if not root or vim.fn.executable(server.cmd[1]) == 0 then return end
    vim.lsp.start({ name = server.name, cmd = server.cmd, root_dir = root }, { bufnr = event.buf })
  end,
})
