-- Commands of the daemon's: each runs a verb as a coroutine, so that what has to be waited for lets the person's editor
-- go on, and is answered once, before its time is over.

local arguments, connection = require('prism.arguments'), require('prism.connection')
local refusal = require('prism.refusal')

-- `running` are commands by the daemon's number, 64 at most. `session` is who asked for what runs at this moment.
local M = { running = {}, verbs = {} }
-- What `await` returns when the time is over.
M.LATE = {}

local function after(ms, act)
  local timer = vim.defer_fn(act, ms)
  return function()
    if timer:is_closing() then return end
    timer:stop()
    timer:close()
  end
end

-- Adds a verb: what it takes, and what it does with that. What `work` returns is the result.
function M.verb(name, takes, work) M.verbs[name] = function(given) return work(arguments.read(given, takes)) end end

local function stop_waiting(command)
  local stop = command.stop_waiting
  command.stop_waiting = nil
  if stop then pcall(stop) end
end

-- Ends a command without an answer.
function M.cancel(id)
  local command = M.running[id]
  if not command then return end
  M.running[id] = nil
  stop_waiting(command)
  command.stop_deadline()
end

function M.cancel_all() vim.iter(vim.tbl_keys(M.running)):each(M.cancel) end

-- Sends the one result of a command, and ends what it waited for.
local function answer(command, is_ok, value)
  if M.running[command.id] ~= command then return end
  M.cancel(command.id)
  if is_ok then return connection.send({ type = 'result', id = command.id, status = 'ok', data = value }) end
  local failure = type(value) == 'table' and value.code and value
    or { code = 'failed', message = 'Neovim says: ' .. tostring(value):match('^[^\n]*') }
  local details = failure.retry_after_ms and { retry_after_ms = failure.retry_after_ms } or nil
  local why = { code = failure.code, message = failure.message, details = details }
  connection.send({ type = 'result', id = command.id, status = 'error', error = why })
end

local function step(command, ...)
  if M.running[command.id] ~= command then return end
  -- What happens while this runs is this session's doing; nobody else's code runs in between.
  M.session = command.session
  local ok, value = coroutine.resume(command.thread, ...)
  M.session = nil
  if coroutine.status(command.thread) == 'dead' then return answer(command, ok, value) end
  -- It waits for what `value` begins.
  local is_over = false
  command.stop_waiting = value(function(...)
    if is_over then return end
    is_over = true
    local given, count = { ... }, select('#', ...)
    vim.schedule(function()
      stop_waiting(command)
      step(command, unpack(given, 1, count))
    end)
  end)
end

function M.run(order)
  local command = { id = order.id, session = order.session_id }
  M.running[command.id] = command
  -- A little earlier than the daemon's, so that it is this answer that arrives.
  command.stop_deadline = after(math.max((order.deadline_ms or 30000) - 250, 50), function()
    local why = order.action .. ' took too long in Neovim; look again what was done'
    answer(command, false, { code = 'timed_out', message = why })
  end)
  command.thread = coroutine.create(function()
    local verb = M.verbs[order.action]
    if not verb then refusal.refuse('unsupported', 'Neovim cannot %s', tostring(order.action)) end
    return verb(order.args or {})
  end)
  step(command)
end

-- Waits until `begin` calls what it is given, and returns what it is called with. `begin` returns what ends it; that is
-- called in any case.
function M.await(begin, within_ms)
  return coroutine.yield(function(resume)
    local stop = begin(resume)
    if not within_ms then return stop end
    local stop_timer = after(within_ms, function() resume(M.LATE) end)
    return function()
      stop_timer()
      if stop then stop() end
    end
  end)
end

-- Lets everything else have its turn.
function M.rest(ms) M.await(function(resume) return after(ms, resume) end) end

-- Waits for something to become so; returns what it is, or nil when the time is over.
function M.await_so(within_ms, look)
  local ends = vim.uv.now() + within_ms
  while true do
    local found = look()
    if found or vim.uv.now() >= ends then return found end
    M.rest(20)
  end
end

return M
