-- The connection to the daemon: found, registered, and dialled again whenever it is lost. What its messages mean is for
-- others to say, in `heard`.

local roots, websocket = require('prism.roots'), require('prism.websocket')

local uv = vim.uv
local VERSION = '0.1.0'
-- What the daemon has not read yet. Beyond it the connection is given up: it does not read.
local MAX_UNSENT = 64 * 1024 * 1024

-- `heard` has a function for each type of message; others are passed over. `verbs` are told as what can be done.
local M = { state = 'not connected yet', failures = 0, heard = {}, verbs = {}, on_lost = function() end }

local function random() return vim.fn.sha256(uv.hrtime() .. tostring({})):sub(1, 16) end

M.instance = ('%d-%d-%s'):format(uv.os_getpid(), os.time(), random())
local seconds, micros = uv.gettimeofday()
M.started_at_ms = seconds * 1000 + math.floor(micros / 1000)

function M.has_ui() return #vim.api.nvim_list_uis() > 0 end

-- Returns where the daemon is: its socket and the editors' secret. Looked up for every connection, as it may have moved.
local function find()
  local home = vim.g.prism_home or uv.os_getenv('PRISM_HOME') or (uv.os_homedir() or '') .. '/.prism'
  local function read(name)
    local file = io.open(home .. '/' .. name, 'rb')
    local bytes = file and file:read('*a')
    if file then file:close() end
    return bytes
  end
  local ok, told = pcall(vim.json.decode, read('http-mcp.json') or '')
  local socket = ok and type(told) == 'table' and type(told.socket) == 'string' and told.socket or home .. '/prism.sock'
  local token = read('plugin-token')
  if not token or not uv.fs_stat(socket) then return nil, ('Prism does not run (%s)'):format(home) end
  return socket, vim.trim(token)
end

local function close()
  if M.pipe and not M.pipe:is_closing() then M.pipe:close() end
  M.pipe, M.is_registered = nil, false
  M.on_lost()
end

-- Ends a connection and dials again, later each time.
local function lose(pipe, why)
  if M.pipe ~= pipe then return end
  close()
  M.state, M.failures = why, M.failures + 1
  local pause = math.min(250 * 2 ^ (M.failures - 1), 10000)
  M.timer = M.timer or uv.new_timer()
  M.timer:start(math.floor(pause * (0.75 + math.random() / 2)), 0, vim.schedule_wrap(M.dial))
end

local function register()
  M.is_registered = false
  local capabilities = vim.tbl_keys(M.verbs)
  table.sort(capabilities)
  M.send({
    type = 'register', protocol = 1, instance_id = M.instance, kind = 'neovim', version = VERSION, ui = M.ui,
    decides = M.ui and vim.g.prism_decides ~= false, shows = M.ui and vim.g.prism_shows ~= false,
    pid = uv.os_getpid(), started_at_ms = M.started_at_ms, roots = roots.open, capabilities = capabilities,
  })
end

local CLOSED = { [1008] = 'the token is wrong', [4008] = 'Neovim did not answer in time', [1001] = 'Prism stopped' }

local function hear(pipe, opcode, payload)
  if opcode == websocket.PING then return pipe:write(websocket.frame(payload, websocket.PONG)) end
  if opcode == websocket.CLOSE then
    local code = #payload >= 2 and payload:byte(1) * 256 + payload:byte(2) or 1005
    return lose(pipe, CLOSED[code] or ('closed with %d %s'):format(code, payload:sub(3)))
  end
  if opcode ~= websocket.TEXT then return end
  local ok, message = pcall(vim.json.decode, payload, { luanil = { object = true } })
  local heard = ok and type(message) == 'table' and M.heard[message.type]
  if heard then heard(message) end
end

-- The handshake. The server's Sec-WebSocket-Accept proves to a page that no cache has answered; a Unix socket has none.
local function greet(pipe, token)
  pipe:write(table.concat({
    'GET /plugin/neovim HTTP/1.1', 'Host: localhost', 'Upgrade: websocket', 'Connection: Upgrade',
    'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: ' .. vim.base64.encode(random()),
    'Authorization: Bearer ' .. token, '\r\n',
  }, '\r\n'))
  -- What comes is read outside of Neovim's main loop, and heard in it, unless the connection is another by then.
  local function later(act, ...)
    local given = { ... }
    vim.schedule(function() if M.pipe == pipe then act(unpack(given)) end end)
  end
  local reader = websocket.reader(function(opcode, payload) later(hear, pipe, opcode, payload) end)
  local head = ''
  pipe:read_start(function(why, bytes)
    if why or not bytes then return later(lose, pipe, why or 'the daemon hung up') end
    if head then
      head = head .. bytes
      local ends = select(2, head:find('\r\n\r\n', 1, true))
      if not ends and #head <= 65536 then return end
      if not ends then return later(lose, pipe, 'no answer to the handshake') end
      if not head:match('^HTTP/1%.1 101') then return later(lose, pipe, 'it refuses: ' .. head:match('^[^\r\n]*')) end
      head, bytes = nil, head:sub(ends + 1)
      later(register)
    end
    local trouble = reader(bytes)
    if trouble then later(lose, pipe, trouble) end
  end)
end

function M.dial()
  if M.pipe or vim.v.dying > 0 then return end
  roots.open = roots.wanted()
  if #roots.open == 0 then
    M.state = 'no folder is open: start Neovim in one, or set g:prism_roots'
    return
  end
  local socket, token = find()
  if not socket then return lose(nil, token) end
  local pipe = uv.new_pipe(false)
  M.pipe, M.state, M.ui = pipe, 'connecting', M.has_ui()
  local function connected(why)
    if M.pipe ~= pipe then return end
    if why then return lose(pipe, 'the socket does not answer: ' .. why) end
    greet(pipe, token)
  end
  pipe:connect(socket, vim.schedule_wrap(connected))
end

-- Connects anew at once, as what was registered is no longer so.
function M.reconnect()
  close()
  M.failures = 0
  M.dial()
end

function M.send(message)
  local pipe = M.pipe
  if not pipe then return end
  local ok, json = pcall(vim.json.encode, message)
  if not ok or #json > websocket.MAX_MESSAGE then
    if message.type ~= 'result' then return end
    local why = { code = ok and 'too_large' or 'failed' }
    why.message = 'the answer does not fit into a message; ask for less of it'
    json = vim.json.encode({ type = 'result', id = message.id, status = 'error', error = why })
  end
  if uv.stream_get_write_queue_size(pipe) > MAX_UNSENT then return lose(pipe, 'the daemon does not read') end
  pipe:write(websocket.frame(json))
end

return M
