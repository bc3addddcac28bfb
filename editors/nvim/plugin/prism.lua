-- What Neovim runs at its start: the commands, and the plugin itself once the screen is there, as the code for language
-- servers takes its time to load. docs/plugin.md has the protocol, docs/editor.md the verbs.
if vim.g.loaded_prism or vim.fn.has('nvim-0.10') == 0 then return end
vim.g.loaded_prism = 1

local function command(name, act, description)
  vim.api.nvim_create_user_command(name, function() act(require('prism')) end, { desc = description })
end

command('PrismStatus', function(prism) vim.notify(prism.status()) end, 'How Neovim is connected to Prism')
command('PrismReconnect', function(prism) prism.reconnect() end, 'Connect to Prism anew')
command('PrismDecide', function(prism) prism.decide() end, 'Answer what agents ask Prism for')
command('PrismRevoke', function(prism) prism.revoke() end, 'Take a grant back from an agent')
command('PrismRuns', function(prism) prism.runs() end, 'Look at what agents run')

local function start()
  vim.schedule(function() require('prism').start() end)
end
if vim.v.vim_did_enter == 1 then return start() end
vim.api.nvim_create_autocmd('VimEnter', { once = true, callback = start })
