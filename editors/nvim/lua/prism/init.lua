-- Prism's agents in the Neovim that a person has open: edits appear in the buffers, the cursor is the real one. This is
-- where the parts meet. Each message of the daemon's is heard here, or in the part that it is about.
--
-- The plugin translates and forwards. Who may do what, how often, and what a person must see first was decided before a
-- command comes here; the one rule that is repeated is that a path lies in the open folders. Everything that touches a
-- buffer runs in Neovim's main loop, one thing after the other, so nothing that a person types is lost between a look and
-- a change.

local buffers, commands, connection = require('prism.buffers'), require('prism.commands'), require('prism.connection')
local desk, events, language = require('prism.desk'), require('prism.events'), require('prism.language')
local roots, runs, windows = require('prism.roots'), require('prism.runs'), require('prism.verbs.windows')

-- What runs programs is not among them, nor is git: Neovim would run them as the person, with the repository's hooks. The
-- built-in editor does that behind its fence, and `runs` shows it. It also does what only sees the disk (search_files,
-- explore_tree, get_workspace_info, watch_file), analyze_syntax, for which Neovim mostly has no grammars, and
-- regex_search, which has the expressions of Rust.
for _, name in ipairs({ 'files', 'buffers', 'search', 'code', 'changes' }) do require('prism.verbs.' .. name) end

local heard, M = connection.heard, { decide = desk.decide, revoke = desk.revoke, runs = runs.choose }
connection.verbs = commands.verbs
M.reconnect = connection.reconnect

function connection.on_lost()
  commands.cancel_all()
  runs.lost()
end

function heard.registered(message)
  connection.is_registered, connection.failures = true, 0
  connection.state = 'connected as ' .. tostring(message.assigned_id)
  events.seq, windows.told = 0, {}
  buffers.look_around()
  events.state(buffers.all())
end

function heard.get_state()
  vim.iter(buffers.all()):each(buffers.refresh)
  events.state(buffers.all())
end

heard.cmd = commands.run
function heard.cancel(message) commands.cancel(message.id) end

-- This runs in Neovim's main loop, which a prompt or a long command holds up: an editor that nobody can use does not
-- answer.
function heard.ping(message) connection.send({ type = 'pong', id = message.id, ui = connection.has_ui() }) end
heard['error'] = function(message) M.complaint = (message.error or {}).message end

function M.status()
  local lines = { 'Prism: ' .. connection.state, 'folders: ' .. table.concat(roots.open, ', ') }
  if M.complaint then lines[#lines + 1] = 'the daemon says: ' .. M.complaint end
  local at_work = vim.tbl_count(commands.running)
  if at_work > 0 then lines[#lines + 1] = ('%d commands of agents are at work'):format(at_work) end
  return table.concat(lines, '\n')
end

function M.start()
  math.randomseed(vim.uv.hrtime() % 2 ^ 31)
  require('prism.watch')
  language.listen()
  connection.dial()
end

return M
