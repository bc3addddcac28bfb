-- What agents run, shown while it runs: each run in a terminal buffer of its own, in which nothing can be typed. No window
-- is opened for one, and none is left; `:PrismRuns` shows them.

local connection, text = require('prism.connection'), require('prism.text')

local api, heard = vim.api, connection.heard
-- In the order in which they began: `bufnr`, `channel`, and the daemon's `id` for as long as more may come.
local M = { all = {} }
-- Runs that are kept. Beyond it the oldest ones that have ended and that no window shows go.
local MAX_KEPT = 32

local function find(id) return vim.iter(M.all):find(function(run) return run.id == id end) end

local function remove(run)
  M.all = vim.tbl_filter(function(other) return other ~= run end, M.all)
  if api.nvim_buf_is_valid(run.bufnr) then api.nvim_buf_delete(run.bufnr, { force = true }) end
end

local function make_room()
  for _, run in ipairs(M.all) do
    local is_idle = not run.id and #vim.fn.win_findbuf(run.bufnr) == 0
    if #M.all >= MAX_KEPT and is_idle or not api.nvim_buf_is_valid(run.bufnr) then remove(run) end
  end
end

-- A plugin of the person's must not take a new terminal for one of theirs, and begin to insert.
local function quietly(work)
  local ignored = vim.o.eventignore
  vim.o.eventignore = 'all'
  local ok, why = pcall(work)
  vim.o.eventignore = ignored
  if not ok then error(why, 0) end
end

-- Returns a name that no running one has.
local function name_of(run)
  local name, count = ('prism://%s/%s'):format(run.agent, run.title), 1
  while vim.fn.bufexists(count == 1 and name or ('%s (%d)'):format(name, count)) == 1 do count = count + 1 end
  return count == 1 and name or ('%s (%d)'):format(name, count)
end

function heard.show(message)
  local agent = text.one_line(message.agent_id or 'agent'):gsub('/', '_')
  local run = { id = message.id, agent = agent, folder = text.one_line(message.path or '') }
  run.title = text.one_line(message.title or ''):gsub('^' .. vim.pesc(agent) .. ': ', '')
  make_room()
  -- What has the same title takes the place of the last one that has ended.
  local function is_same(one) return not one.id and one.agent == run.agent and one.title == run.title end
  local old = vim.iter(M.all):find(is_same)
  quietly(function()
    run.bufnr = api.nvim_create_buf(true, true)
    run.channel = api.nvim_open_term(run.bufnr, { on_input = function() end, force_crlf = false })
    for _, window in ipairs(old and vim.fn.win_findbuf(old.bufnr) or {}) do api.nvim_win_set_buf(window, run.bufnr) end
    if old then remove(old) end
    api.nvim_buf_set_name(run.bufnr, name_of(run))
  end)
  M.all[#M.all + 1] = run
  api.nvim_chan_send(run.channel, ('\27[2m%s $ %s\27[0m\r\n'):format(run.folder, text.one_line(message.command or '')))
end

function heard.show_output(message)
  local run = find(message.id)
  if run then pcall(api.nvim_chan_send, run.channel, message.text) end
end

local function finish(run, how)
  pcall(api.nvim_chan_send, run.channel, ('\27[0m\r\n\27[2m[%s]\27[0m'):format(text.one_line(how)))
  run.id, run.how = nil, how
end

function heard.show_ended(message)
  local run = find(message.id)
  local how = message.signal and 'ended by signal ' .. message.signal
    or message.exit_code and 'exit code ' .. message.exit_code
    or 'given up'
  if run then finish(run, message.note and ('%s; %s'):format(how, message.note) or how) end
end

-- What still runs is told on no other connection.
function M.lost() for _, run in ipairs(M.all) do if run.id then finish(run, 'lost with the connection') end end end

-- Lets the person choose one to look at.
function M.choose()
  local runs = vim.tbl_filter(function(run) return api.nvim_buf_is_valid(run.bufnr) end, M.all)
  if #runs == 0 then return vim.notify('Prism: no agent has run anything') end
  local function label(run)
    return ('%s: %s in %s (%s)'):format(run.agent, run.title, run.folder, run.how or 'running')
  end
  vim.ui.select(vim.iter(runs):rev():totable(), { prompt = 'Prism', format_item = label }, function(run)
    if not run then return end
    vim.cmd.sbuffer(run.bufnr)
    vim.cmd('normal! G')
  end)
end

return M
