-- The language servers that the person has set up: asked, and heard along to.

local buffers, commands, events = require('prism.buffers'), require('prism.commands'), require('prism.events')
local position, refusal = require('prism.position'), require('prism.refusal')

local refuse, wrong, quoted, uv = refusal.refuse, refusal.wrong, refusal.quoted, vim.uv
-- How long a server has for one answer, and how long one may take to attach to a file that was just opened.
local M = { ANSWER_MS = 10000 }
local ATTACH_MS = 5000
local DIAGNOSTIC = 'textDocument/diagnostic'
-- What servers have said unasked, by client and buffer: the errors, and of which version of the text they are.
local published = vim.defaulttable()

local function tell_errors(buffer)
  if not vim.api.nvim_buf_is_loaded(buffer.bufnr) then return end
  local counts, data = vim.diagnostic.count(buffer.bufnr), { path = buffer.path, version = buffer.version }
  data.errors, data.warnings = counts[1] or 0, counts[2] or 0
  events.tell('errors_detected', data)
end

-- Listens along to what servers say unasked.
function M.listen()
  local method = 'textDocument/publishDiagnostics'
  local usual = vim.lsp.handlers[method]
  local function hear(result, client_id)
    local path = vim.uri_to_fname(result.uri)
    local buffer = buffers.at(uv.fs_realpath(path) or path)
    if not buffer then return end
    -- Servers that name no version mean the text that they had; it is ours if it has rested since.
    local is_current = type(result.version) ~= 'number' or result.version >= (buffer.lines_tick or 0)
    local known = published[client_id]
    local version = is_current and buffer.version or (rawget(known, buffer.bufnr) or {}).version
    known[buffer.bufnr] = { items = result.diagnostics, version = version }
    vim.schedule(function() tell_errors(buffer) end)
  end
  vim.lsp.handlers[method] = function(err, result, context, ...)
    pcall(hear, result, context.client_id)
    return usual(err, result, context, ...)
  end
end

function M.busy_with(client) return (select(2, next(client.progress.pending))) end

function M.clients(buffer, method) return vim.lsp.get_clients({ bufnr = buffer.bufnr, method = method }) end

function M.offers(client, buffer, method)
  return vim.iter(M.clients(buffer, method)):any(function(one) return one.id == client.id end)
end

-- Returns the servers of a text that are attached by now; of one that was just opened, they are waited for.
function M.attached(buffer)
  local left = math.max(ATTACH_MS - (uv.now() - buffer.born), 0)
  local clients = commands.await_so(left, function()
    local attached = M.clients(buffer)
    return #attached > 0 and attached or nil
  end)
  local filetype = vim.bo[buffer.bufnr].filetype
  local why = 'no language server is attached to %s in Neovim; set one up for %s (:help lsp), then open it again'
  return clients or refuse('unsupported', why, quoted(buffer.path), filetype ~= '' and filetype or 'its language')
end

-- Returns the server that answers a method. `what` says what it is for.
function M.client(buffer, method, what)
  local attached = M.attached(buffer)
  return M.clients(buffer, method)[1]
    or refuse('unsupported', 'the language server %s cannot %s', attached[1].name, what)
end

-- Before 0.11 the functions of a client were no methods.
local function call(client, name, ...)
  if vim.fn.has('nvim-0.11') == 1 then return client[name](client, ...) end
  return client[name](...)
end

-- Content modified, server cancelled: it wants to be asked again.
local AGAIN = { [-32801] = true, [-32802] = true }

-- Asks a server, which Neovim sends the text as it is first, and returns its answer: nil if that is null, `on_late` if
-- none comes in time.
function M.ask(client, buffer, method, params, within_ms, on_late)
  local ends = uv.now() + (within_ms or M.ANSWER_MS)
  while true do
    local err, result = commands.await(function(resume)
      local sent, id = call(client, 'request', method, params, function(...) resume(...) end, buffer.bufnr)
      if not sent then resume({ message = 'it has ended' }) end
      return function() pcall(call, client, 'cancel_request', id) end
    end, math.max(ends - uv.now(), 1))
    if err == commands.LATE then
      return on_late or refuse('timed_out', 'the language server %s has not answered in time', client.name)
    end
    if not err then return result ~= vim.NIL and result or nil end
    if err.code == -32601 then refuse('unsupported', 'the language server %s cannot do %s', client.name, method) end
    if not AGAIN[err.code] or uv.now() >= ends then
      local told = tostring(err.message or err):sub(1, 500)
      refuse('failed', 'the language server %s says: %s', client.name, told)
    end
    commands.rest(50)
  end
end

function M.document(buffer) return { uri = vim.uri_from_fname(buffer.path) } end

-- Returns a position of ours as a server counts; refused if the text has none such.
function M.position(client, buffer, given)
  local offset, why = position.offset(buffer.text, buffers.lines(buffer), given)
  if not offset then wrong(why) end
  return position.at(buffer.text, buffers.lines(buffer), offset, client.offset_encoding)
end

function M.range(client, buffer, given)
  return { start = M.position(client, buffer, given.start), ['end'] = M.position(client, buffer, given['end']) }
end

-- Returns a server's range as we count, in a text. Where the text is not known it stays as it is.
function M.told_range(client, range, whole, lines)
  local function told(there)
    local bounds = client.offset_encoding ~= 'utf-16' and whole and lines[there.line + 1]
    if not bounds then return { line = there.line, character = there.character } end
    local words = whole:sub(bounds[1] + 1, bounds[2])
    local byte = position.to_byte(words, there.character, client.offset_encoding) or 0
    return { line = there.line, character = position.to_units(words, byte) }
  end
  return { start = told(range.start), ['end'] = told(range['end']) }
end

-- Asks a server for the errors of a text as it is. Returns them and the version that they are of.
local function pull(client, buffer, ends)
  local items, answered, is_done = {}, nil, false
  local identifier = vim.tbl_get(client.server_capabilities, 'diagnosticProvider', 'identifier')
  repeat
    local version = buffers.refresh(buffer).version
    local params = { textDocument = M.document(buffer), identifier = identifier }
    local left = math.max(ends - uv.now(), 100)
    local result = M.ask(client, buffer, DIAGNOSTIC, params, left, commands.LATE)
    -- What is known by then is told, with what it is of.
    if result == commands.LATE then break end
    items, answered = (result or {}).items or {}, version
    is_done = buffers.refresh(buffer).version == version and not M.busy_with(client)
    if not is_done and uv.now() < ends then commands.rest(50) end
  until is_done or uv.now() >= ends
  return items, answered
end

-- Returns what a server has said by itself, and the version that it is of.
local function told_by(client, buffer, ends)
  local function known() return rawget(published[client.id], buffer.bufnr) or {} end
  commands.await_so(math.max(ends - uv.now(), 0), function()
    local is_current = known().version == buffers.refresh(buffer).version and not M.busy_with(client)
    -- Some say only after a while that they want to be asked.
    return is_current or M.offers(client, buffer, DIAGNOSTIC)
  end)
  return known().items or {}, known().version
end

local SEVERITIES = { 'error', 'warning', 'information', 'hint' }

-- Returns all errors of a text: what every server says, the oldest version that one of them speaks of, whether that is
-- all, who they are, and the errors as they said them.
function M.errors(buffer, clients, ends)
  local told, oldest, is_complete, servers, raw = {}, nil, true, {}, {}
  for _, client in ipairs(clients) do
    local items, version
    if not M.offers(client, buffer, DIAGNOSTIC) then items, version = told_by(client, buffer, ends) end
    if M.offers(client, buffer, DIAGNOSTIC) then items, version = pull(client, buffer, ends) end
    local busy_with = M.busy_with(client)
    is_complete = is_complete and version == buffer.version and not busy_with
    oldest = version and math.min(oldest or version, version) or oldest
    local root = client.config.root_dir or vim.NIL
    servers[#servers + 1] = { name = client.name, root = root, busy_with = busy_with or vim.NIL }
    vim.list_extend(raw, items)
    for _, item in ipairs(items) do
      told[#told + 1] = {
        path = buffer.path, range = M.told_range(client, item.range, buffer.text, buffers.lines(buffer)),
        severity = SEVERITIES[item.severity or 1] or 'error', message = item.message,
        source = item.source or vim.NIL, code = item.code or vim.NIL,
      }
    end
  end
  return told, oldest, is_complete, servers, raw
end

return M
