-- Prism's agents in the Neovim that a person has open: edits appear in the buffers, the cursor is the real one.
--
-- Copy this file to ~/.config/nvim/plugin/, or to lua/ and `require 'prism'`. It finds the daemon in $PRISM_HOME or
-- ~/.prism and dials its Unix socket; docs/plugin.md has the protocol, docs/editor.md the verbs. Neovim 0.7 to 0.12.
--
-- It translates and forwards. Who may do what, how often, and what a person must see first was decided before a command
-- comes here; the one rule that is repeated is that a path lies in the open folders. Everything that touches a buffer
-- runs in Neovim's main loop, one thing after the other, so nothing that a person types is lost between a look and a
-- change.

local M = {}

-- The parts, each with its functions further down: `line` is the connection, `commands` runs what comes over it by
-- `verbs`, `buffers` are the open texts, `voice` tells of what happens, `lsp` asks the language servers that are
-- attached.
local line, commands, verbs, buffers, voice, lsp = {}, {}, {}, {}, {}, {}
local roots, text, place, frame, args_of = {}, {}, {}, {}, nil

local uv, api, fn, NIL = vim.uv or vim.loop, vim.api, vim.fn, vim.NIL
local VERSION = '0.1.0'

-- The largest text that is opened, and the largest message either way. A larger one ends the connection.
local MAX_TEXT, MAX_MESSAGE = 5 * 1024 * 1024, 16 * 1024 * 1024
-- What the daemon has not read yet. Beyond it the connection is given up: it does not read.
local MAX_UNSENT = 64 * 1024 * 1024
-- Edits and files of one command; more is refused.
local MAX_EDITS, MAX_FILES = 1000, 200
-- Buffers that agents have opened and nobody looks at. Beyond it the clean ones that were not used lately are closed.
local MAX_OPENED = 256
-- Windows of a tab page; no further one is split.
local MAX_PANES = 16

-- Terminals, commands, builds and git are not here, nor in `capabilities`: Neovim would run them as the person, with
-- all that the person can reach and with the repository's hooks. The built-in editor does them in the same folder
-- behind its fence. search_files, explore_tree, get_workspace_info and watch_file see the disk, which the built-in
-- editor does as well; analyze_syntax needs grammars that Neovim mostly does not have, and regex_search the expressions
-- of Rust, of which Vim has only a part.

-- === Refusals and arguments ===

local function refuse(code, message, retry_after_ms)
  error({ code = code, message = message, retry_after_ms = retry_after_ms }, 0)
end

local function wrong(message) refuse('bad_arguments', message) end

local function quoted(value) return vim.json.encode(value):gsub('\\/', '/') .. '' end

local function kind_of(value)
  if value == nil or value == NIL then return 'null' end
  if type(value) == 'table' then
    local is_list = #value > 0 or (next(value) == nil and getmetatable(value) == nil)
    return is_list and 'an array' or 'an object'
  end
  return ({ boolean = 'a boolean', number = 'a number', string = 'a string' })[type(value)] or type(value)
end

-- What of some arguments has not been read yet. One that nobody knows is refused: who has mistaken a name should learn
-- of it.
function args_of(given)
  local left, known, args = {}, {}, {}
  for name, value in pairs(given) do
    left[name] = value
  end

  function args.take(name)
    known[#known + 1] = '`' .. name .. '`'
    local value = left[name]
    left[name] = nil
    if value == NIL then return nil end
    return value
  end

  function args.maybe_text(name)
    local value = args.take(name)
    if value ~= nil and type(value) ~= 'string' then
      wrong(('`%s` must be a string, not %s'):format(name, kind_of(value)))
    end
    return value
  end

  function args.text(name) return args.maybe_text(name) or wrong(('`%s` is missing: a string'):format(name)) end

  function args.flag(name)
    local value = args.take(name)
    if value ~= nil and type(value) ~= 'boolean' then
      wrong(('`%s` must be true or false, not %s'):format(name, kind_of(value)))
    end
    return value == true
  end

  function args.number(name, least, most)
    local value = args.take(name)
    if value == nil then return nil end
    if type(value) ~= 'number' or value % 1 ~= 0 or value < least or value > most then
      local told = type(value) == 'number' and tostring(value) or kind_of(value)
      wrong(('`%s` must be a whole number from %d to %.0f, not %s'):format(name, least, most, told))
    end
    return value
  end

  function args.version() return args.number('version', 0, 2 ^ 53) end

  function args.position(name)
    local value = args.take(name)
    return value ~= nil and place.read(name, value) or nil
  end

  function args.range(name)
    local value = args.take(name)
    return value ~= nil and place.read_range(name, value) or nil
  end

  -- What a file is to hold, as bytes.
  function args.content(name)
    local content, encoding = args.maybe_text(name), args.maybe_text('encoding')
    if content == nil or encoding == nil or encoding == 'utf-8' then return content end
    if encoding ~= 'base64' then wrong(('`encoding` is "utf-8" or "base64", not %s'):format(quoted(encoding))) end
    return text.from_base64(content)
      or wrong(('`%s` is not base64 (the standard alphabet, padded, no line breaks)'):format(name))
  end

  function args.done()
    local name = next(left)
    if name == nil then return end
    local takes = #known == 0 and 'it takes none' or 'it takes ' .. table.concat(known, ', ')
    wrong(('there is no argument %s; %s'):format(quoted(tostring(name)), takes))
  end

  return args
end

local function members(name, value)
  if kind_of(value) ~= 'an object' then wrong(('`%s` must be an object, not %s'):format(name, kind_of(value))) end
  return args_of(value)
end

local function array(name, value)
  if kind_of(value) ~= 'an array' then wrong(('`%s` must be an array, not %s'):format(name, kind_of(value))) end
  return value
end

-- === Texts as bytes ===

-- Returns whether these bytes are what a person could read: UTF-8, and no NUL. Anything else would not survive JSON.
function text.is_text(bytes)
  local at, length = bytes:find('[^\1-\127]'), #bytes
  if at and bytes:find('\0', 1, true) then return false end
  while at do
    local first, more, least = bytes:byte(at), nil, 0x80
    if first >= 0xC2 and first <= 0xDF then
      more = 1
    elseif first >= 0xE0 and first <= 0xEF then
      more = 2
    elseif first >= 0xF0 and first <= 0xF4 then
      more = 3
    else
      return false
    end
    local most = 0xBF
    if first == 0xE0 then
      least = 0xA0
    elseif first == 0xED then
      most = 0x9F
    elseif first == 0xF0 then
      least = 0x90
    elseif first == 0xF4 then
      most = 0x8F
    end
    for i = 1, more do
      local byte = bytes:byte(at + i)
      if not byte or byte < least or byte > most then return false end
      least, most = 0x80, 0xBF
    end
    at = at + more + 1
    if at <= length and bytes:byte(at) < 0x80 then at = bytes:find('[\128-\255]', at) end
    if at and at > length then at = nil end
  end
  return true
end

-- Returns the SHA-256 in hex. Neovim's own is quick but takes no NUL before 0.12.
function text.digest(bytes)
  if not bytes:find('\0', 1, true) then return fn.sha256(bytes) end
  return text.sha256(bytes)
end

local function primes_fractions(root, count)
  local found, candidate = {}, 2
  while #found < count do
    local is_prime = true
    for divisor = 2, math.floor(math.sqrt(candidate)) do
      if candidate % divisor == 0 then
        is_prime = false
        break
      end
    end
    if is_prime then found[#found + 1] = math.floor((candidate ^ (1 / root) % 1) * 2 ^ 32) end
    candidate = candidate + 1
  end
  return found
end

function text.sha256(bytes)
  local bit = require('bit')
  local bxor, band, bnot, ror, rsh, tobit = bit.bxor, bit.band, bit.bnot, bit.ror, bit.rshift, bit.tobit
  text.k = text.k or primes_fractions(3, 64)
  local k, h = text.k, primes_fractions(2, 8)
  local bits = #bytes * 8
  local length = ''
  for i = 7, 0, -1 do
    length = length .. string.char(math.floor(bits / 2 ^ (8 * i)) % 256)
  end
  bytes = bytes .. '\128' .. ('\0'):rep((55 - #bytes) % 64) .. length
  local w = {}
  for block = 1, #bytes, 64 do
    for i = 0, 15 do
      local a, b, c, d = bytes:byte(block + 4 * i, block + 4 * i + 3)
      w[i] = tobit(a * 2 ^ 24 + b * 2 ^ 16 + c * 2 ^ 8 + d)
    end
    for i = 16, 63 do
      local x, y = w[i - 15], w[i - 2]
      local s0 = bxor(ror(x, 7), ror(x, 18), rsh(x, 3))
      local s1 = bxor(ror(y, 17), ror(y, 19), rsh(y, 10))
      w[i] = tobit(w[i - 16] + s0 + w[i - 7] + s1)
    end
    local a, b, c, d, e, f, g, last = unpack(h)
    for i = 0, 63 do
      local s1 = bxor(ror(e, 6), ror(e, 11), ror(e, 25))
      local t1 = tobit(last + s1 + bxor(band(e, f), band(bnot(e), g)) + k[i + 1] + w[i])
      local s0 = bxor(ror(a, 2), ror(a, 13), ror(a, 22))
      local t2 = tobit(s0 + bxor(band(a, b), band(a, c), band(b, c)))
      last, g, f, e, d, c, b, a = g, f, e, tobit(d + t1), c, b, a, tobit(t1 + t2)
    end
    for i, value in ipairs({ a, b, c, d, e, f, g, last }) do
      h[i] = tobit(h[i] + value)
    end
  end
  for i = 1, 8 do
    h[i] = bit.tohex(h[i])
  end
  return table.concat(h)
end

local ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

function text.to_base64(bytes)
  if vim.base64 then return vim.base64.encode(bytes) end
  local out = {}
  for at = 1, #bytes, 3 do
    local a, b, c = bytes:byte(at, at + 2)
    local group = a * 65536 + (b or 0) * 256 + (c or 0)
    for i = 0, 3 do
      local sextet = math.floor(group / 64 ^ (3 - i)) % 64
      local is_padding = (i == 2 and not b) or (i == 3 and not c)
      out[#out + 1] = is_padding and '=' or ALPHABET:sub(sextet + 1, sextet + 1)
    end
  end
  return table.concat(out)
end

-- Reads what `to_base64` writes, and nothing that merely looks like it.
function text.from_base64(encoded)
  if #encoded % 4 ~= 0 or encoded:find('[^%w+/=]') or encoded:find('=[^=]') or encoded:find('===') then return nil end
  local out = {}
  for at = 1, #encoded, 4 do
    local group, given = 0, 0
    for i = 0, 3 do
      local letter = encoded:sub(at + i, at + i)
      if letter ~= '=' then given = given + 1 end
      group = group * 64 + (letter == '=' and 0 or ALPHABET:find(letter, 1, true) - 1)
    end
    local bytes = string.char(math.floor(group / 65536), math.floor(group / 256) % 256, group % 256)
    out[#out + 1] = bytes:sub(1, given - 1)
  end
  local bytes = table.concat(out)
  return text.to_base64(bytes) == encoded and bytes or nil
end

-- Returns the difference as `diff -u` has it.
function text.unified(path, old, new)
  path = path:gsub('%c', '\239\191\189')
  local differ = (vim.text and vim.text.diff) or vim.diff
  return ('--- %s\n+++ %s\n%s'):format(path, path, differ(old, new, { result_type = 'unified', ctxlen = 3 }))
end

-- === Places: a line, and UTF-16 units in it, both from zero ===

local function width_of(byte) return byte < 0x80 and 1 or byte < 0xE0 and 2 or byte < 0xF0 and 3 or 4 end

-- Returns the bytes before a place in a line: nil if it is within a character. Beyond the end is the end, as in LSP.
function place.to_byte(words, units, encoding)
  if encoding == 'utf-8' or not words:find('[\128-\255]') then return math.min(units, #words) end
  local at, passed = 1, 0
  while at <= #words do
    if passed == units then return at - 1 end
    local width = width_of(words:byte(at))
    passed = passed + ((width == 4 and encoding ~= 'utf-32') and 2 or 1)
    if passed > units then return nil end
    at = at + width
  end
  return #words
end

-- Returns the units before a byte of a line.
function place.to_units(words, bytes, encoding)
  bytes = math.min(bytes, #words)
  if encoding == 'utf-8' or not words:find('[\128-\255]') then return bytes end
  local at, passed = 1, 0
  while at <= bytes do
    local width = width_of(words:byte(at))
    passed = passed + ((width == 4 and encoding ~= 'utf-32') and 2 or 1)
    at = at + width
  end
  return passed
end

-- Returns where each line begins and where it ends without its break, in bytes from zero. A line ends with \n, \r\n or
-- \r, and what follows the last break is a line too: so LSP counts, and not Neovim.
function place.lines(whole)
  local lines, start = {}, 1
  local breaks, is_plain = '[\r\n]', false
  if not whole:find('\r', 1, true) then
    breaks, is_plain = '\n', true
  end
  while true do
    local at = whole:find(breaks, start, is_plain)
    if not at then break end
    lines[#lines + 1] = { start - 1, at - 1 }
    start = (whole:byte(at) == 13 and whole:byte(at + 1) == 10) and at + 2 or at + 1
  end
  lines[#lines + 1] = { start - 1, #whole }
  return lines
end

-- Returns the byte at a place, or nil and why there is none.
function place.offset(whole, lines, position, encoding)
  local found = lines[position.line + 1]
  if not found then return nil, ('there is no line %d; the last is %d'):format(position.line, #lines - 1) end
  local byte = place.to_byte(whole:sub(found[1] + 1, found[2]), position.character, encoding)
  if not byte then
    return nil, ('line %d has no place %d: it is within a character'):format(position.line, position.character)
  end
  return found[1] + byte
end

-- Returns the place of a byte.
function place.at(whole, lines, offset, encoding)
  local low, high = 1, #lines
  while low < high do
    local middle = math.floor((low + high + 1) / 2)
    if lines[middle][1] <= offset then
      low = middle
    else
      high = middle - 1
    end
  end
  local start, stop = lines[low][1], lines[low][2]
  local units = place.to_units(whole:sub(start + 1, stop), math.min(offset, stop) - start, encoding)
  return { line = low - 1, character = units }
end

function place.read(name, value)
  local given, found = members(name, value), {}
  for _, member in ipairs({ 'line', 'character' }) do
    found[member] = given.number(member, 0, 2 ^ 32 - 1) or wrong(('`%s` has no `%s`'):format(name, member))
  end
  given.done()
  return found
end

function place.read_range(name, value)
  local ends, found = members(name, value), {}
  for _, stop in ipairs({ 'start', 'end' }) do
    local there = ends.take(stop) or wrong(('`%s` has no `%s`'):format(name, stop))
    found[stop] = place.read(stop, there)
  end
  ends.done()
  return found
end

-- === The open folders ===

local function is_beneath(path, root) return path == root or root == '/' or path:sub(1, #root + 1) == root .. '/' end

-- The folders that are told to be open: those of `g:prism_roots`, else the current one. The home folder and `/` hold
-- more than one is at work on, so they have to be named.
function roots.wanted()
  local named, found = vim.g.prism_roots, {}
  for _, folder in ipairs(type(named) == 'table' and named or { uv.cwd() }) do
    local real = uv.fs_realpath(fn.fnamemodify(folder, ':p'))
    local is_too_wide = not named and (real == '/' or real == uv.fs_realpath(uv.os_homedir() or '/'))
    if real and not is_too_wide then found[#found + 1] = real end
  end
  return found
end

function roots.hold(path)
  for _, root in ipairs(roots.open or {}) do
    if is_beneath(path, root) then return true end
  end
  return false
end

-- Returns where a path really is, links resolved: of what is not there yet, its names below the nearest folder that is.
-- Neovim opens by name, so this is looked at again right before each use.
function roots.real(path)
  if path:sub(1, 1) ~= '/' then wrong(('%s is no absolute path'):format(quoted(path))) end
  if path:find('\0', 1, true) then wrong('a path cannot hold a NUL') end
  local head, rest = path:gsub('/+$', ''), ''
  while head ~= '' do
    local real = uv.fs_realpath(head)
    if real then
      path = (real == '/' and '' or real) .. rest
      break
    end
    local folder, name = head:match('^(.*)/([^/]*)$')
    if name == '..' or name == '.' then refuse('not_found', ('%s: there is no such folder'):format(quoted(path))) end
    head, rest = folder, '/' .. name .. rest
  end
  if not roots.hold(path) then
    refuse('outside_root', ('%s is in none of the folders that are open in Neovim'):format(quoted(path)))
  end
  return path
end

-- The same of a name, whatever a link by that name leads to.
function roots.named(path)
  local folder, name = path:gsub('/+$', ''):match('^(.*)/([^/]+)$')
  if not name or name == '.' or name == '..' then wrong(('%s names nothing in a folder'):format(quoted(path))) end
  local real = roots.real(folder == '' and '/' or folder)
  return (real == '/' and '' or real) .. '/' .. name
end

local function stat_of(path) return uv.fs_stat(path) end

local function stamp_of(stat)
  return stat and table.concat({ stat.mtime.sec, stat.mtime.nsec, stat.size, stat.ino }, ' ')
end

local function not_found(path) refuse('not_found', ('there is no file %s'):format(quoted(path))) end

local function told_error(path, why, name)
  local code = ({
    ENOENT = 'not_found',
    ENOTDIR = 'bad_arguments',
    EEXIST = 'bad_arguments',
    ENOTEMPTY = 'bad_arguments',
    EISDIR = 'bad_arguments',
  })[name] or 'failed'
  refuse(code, ('%s: %s'):format(quoted(path), (tostring(why):gsub('^%u+: ', ''):gsub(': /.*$', ''))))
end

-- Reads all of a file that is there.
local function read_file(path)
  local stat = stat_of(path)
  if not stat then not_found(path) end
  if stat.type ~= 'file' then wrong(('%s is no file but a %s'):format(quoted(path), stat.type)) end
  if stat.size > MAX_TEXT then
    refuse('too_large', ('%s has more than %d bytes; read a part of it with a command'):format(quoted(path), MAX_TEXT))
  end
  local handle, why, name = uv.fs_open(path, 'r', 0)
  if not handle then told_error(path, why, name) end
  local bytes = uv.fs_read(handle, MAX_TEXT + 1, 0)
  uv.fs_close(handle)
  if not bytes then refuse('failed', ('%s cannot be read'):format(quoted(path))) end
  return bytes, stat
end

-- Writes a file that is not there yet.
local function create_file(path, bytes, mode)
  -- `wx`: what is there by that name, a link too, is left alone.
  local handle, why, name = uv.fs_open(path, 'wx', mode or 420)
  if not handle then return nil, why, name end
  local written, trouble = uv.fs_write(handle, bytes, 0)
  if written then uv.fs_fsync(handle) end
  uv.fs_close(handle)
  if written == #bytes then return true end
  uv.fs_unlink(path)
  return nil, trouble or 'the disk is full', 'EIO'
end

-- Puts other bytes in the place of a file, at once: nobody ever sees half of them.
local function replace_file(path, bytes, stat)
  if not uv.fs_access(path, 'W') then refuse('failed', ('%s is read-only'):format(quoted(path))) end
  local beside = ('%s.prism-%d-%d'):format(path, uv.os_getpid(), uv.hrtime() % 1e9)
  local made, why, name = create_file(beside, bytes, stat.mode % 4096)
  if not made then told_error(path, why, name) end
  uv.fs_chmod(beside, stat.mode % 4096)
  made, why, name = uv.fs_rename(beside, path)
  if made then return end
  uv.fs_unlink(beside)
  told_error(path, why, name)
end

local function check_size(bytes)
  if #bytes > MAX_TEXT then
    refuse('too_large', ('a file of %d bytes; at most %d can be written'):format(#bytes, MAX_TEXT))
  end
end

-- === Open texts ===

-- By Neovim's number of the buffer. Each has its `path`, the told `version`, and the `text` of that version.
buffers.known = {}
-- Begins where no instance before this one has been, and grows with each change of any text: a version never comes
-- twice.
buffers.last_version = os.time() - 1767225600

local LANGUAGES = {
  rs = 'rust',
  py = 'python',
  pyi = 'python',
  ts = 'typescript',
  mts = 'typescript',
  cts = 'typescript',
  tsx = 'typescriptreact',
  js = 'javascript',
  mjs = 'javascript',
  cjs = 'javascript',
  jsx = 'javascript',
  go = 'go',
  c = 'c',
  h = 'c',
  cc = 'cpp',
  cpp = 'cpp',
  cxx = 'cpp',
  hh = 'cpp',
  hpp = 'cpp',
  hxx = 'cpp',
  sh = 'shellscript',
  bash = 'shellscript',
  json = 'json',
  toml = 'toml',
  md = 'markdown',
  markdown = 'markdown',
}

local function language_of(path, buffer)
  local filetype = vim.bo[buffer].filetype
  return LANGUAGES[path:match('%.([^./]+)$') or ''] or (filetype ~= '' and filetype) or NIL
end

-- The path of a buffer that shows a file of the open folders, else nil.
local function path_of(buffer)
  if not api.nvim_buf_is_loaded(buffer) or vim.bo[buffer].buftype ~= '' then return nil end
  local name = api.nvim_buf_get_name(buffer)
  -- What has a scheme (`term://`, `fugitive://`) is no file.
  if name == '' or name:match('^%a[%w+.-]*://') then return nil end
  local ok, path = pcall(roots.real, name)
  if not ok then return nil end
  local stat = stat_of(path)
  return (not stat or stat.type == 'file') and path or nil
end

-- What a buffer holds, as it would be written: nil if that is no text, or too much of it.
local function contents(buffer)
  local count = api.nvim_buf_line_count(buffer)
  if api.nvim_buf_get_offset(buffer, count) > MAX_TEXT then return nil end
  local options = vim.bo[buffer]
  local now = { lines = api.nvim_buf_get_lines(buffer, 0, -1, true), has_end = options.endofline, bomb = options.bomb }
  now.separator = ({ dos = '\r\n', mac = '\r' })[options.fileformat] or '\n'
  -- One empty line is a line break, or nothing at all; only this tells.
  local is_empty = count == 1
    and now.lines[1] == ''
    and api.nvim_buf_call(buffer, function() return fn.wordcount().bytes end) == 0
  now.is_empty = is_empty
  now.text = is_empty and '' or table.concat(now.lines, now.separator) .. (now.has_end and now.separator or '')
  if now.bomb then now.text = '\239\187\191' .. now.text end
  return text.is_text(now.text) and now or nil
end

local function take_in(record, now)
  record.text, record.lines, record.separator = now.text, now.lines, now.separator
  record.has_end, record.bomb, record.is_empty = now.has_end, now.bomb, now.is_empty
  record.digest, record.places = nil, nil
end

local function is_dirty(record) return vim.bo[record.buffer].modified end

local function digest_of(record)
  record.digest = record.digest or text.digest(record.text)
  return record.digest
end

local function places_of(record)
  record.places = record.places or place.lines(record.text)
  return record.places
end

local function next_version()
  buffers.last_version = buffers.last_version + 1
  return buffers.last_version
end

-- Brings what is known of a buffer up to what it holds, and tells of the change. Neovim's `changedtick` says whether
-- anything may be another; as it also moves without any change of the text (`:write`), the text itself decides on the
-- version.
function buffers.now(record, reason)
  local buffer, options = record.buffer, vim.bo[record.buffer]
  local tick = api.nvim_buf_get_changedtick(buffer)
  local form = options.fileformat .. tostring(options.endofline) .. tostring(options.bomb)
  if tick == record.tick and form == record.form then return record end
  local now = contents(buffer)
  if not now then
    buffers.forget(record)
    return nil
  end
  record.tick, record.form = tick, form
  if now.text ~= record.text then
    local before = { text = record.text, lines = record.lines, version = record.version, has_end = record.has_end }
    take_in(record, now)
    record.version = next_version()
    if not is_dirty(record) then record.disk = digest_of(record) end
    voice.changed(record, before, reason)
  end
  return record
end

-- Knows a buffer from now on, if it is one to know.
function buffers.meet(buffer)
  local record = buffers.known[buffer]
  if record then return buffers.now(record) end
  local path = path_of(buffer)
  local now = path and contents(buffer)
  if not now then return nil end
  record = { buffer = buffer, path = path, version = next_version(), born = uv.now(), steps = {}, used = uv.now() }
  take_in(record, now)
  record.tick = api.nvim_buf_get_changedtick(buffer)
  local options = vim.bo[buffer]
  record.form = options.fileformat .. tostring(options.endofline) .. tostring(options.bomb)
  buffers.known[buffer] = record
  buffers.look_at_disk(record)
  local function changed()
    if buffers.known[buffer] ~= record then return true end
    voice.soon()
  end
  api.nvim_buf_attach(buffer, false, {
    on_lines = function(_, _, tick)
      -- The number by which Neovim names this text to language servers.
      record.lines_tick = tick or record.lines_tick
      return changed()
    end,
    on_reload = changed,
    on_changedtick = changed,
  })
  voice.tell('file_opened', { path = path, version = record.version, by = commands.session })
  return record
end

function buffers.forget(record)
  if buffers.known[record.buffer] ~= record then return end
  buffers.known[record.buffer] = nil
  voice.tell('file_closed', { path = record.path, by = commands.session })
end

-- Knows all that is open, and no longer what is not.
function buffers.look_around()
  for buffer, record in pairs(buffers.known) do
    if not api.nvim_buf_is_valid(buffer) or path_of(buffer) ~= record.path then buffers.forget(record) end
  end
  for _, buffer in ipairs(api.nvim_list_bufs()) do
    buffers.meet(buffer)
  end
end

function buffers.all()
  local all = {}
  for buffer, record in pairs(buffers.known) do
    if api.nvim_buf_is_loaded(buffer) then all[#all + 1] = record end
  end
  table.sort(all, function(a, b) return a.path < b.path end)
  return all
end

-- The record of a path that is open.
function buffers.at(path)
  for buffer, record in pairs(buffers.known) do
    if record.path == path and api.nvim_buf_is_loaded(buffer) then return buffers.now(record) end
  end
end

-- Notes what the file holds that a buffer was made from. What Neovim shows in another encoding than it is written in is
-- shown, and not edited: the places of one are not those of the other.
function buffers.look_at_disk(record)
  local ok, bytes, stat = pcall(read_file, record.path)
  record.disk, record.stamp, record.is_other = ok and text.digest(bytes) or nil, ok and stamp_of(stat) or nil, false
  record.read_stamp = record.stamp
  record.is_converted = ok and not is_dirty(record) and bytes ~= record.text
end

-- Lets a clean buffer follow its file; of one with unsaved text it is noted that the file is another.
function buffers.follow(record)
  local stat = stat_of(record.path)
  if stamp_of(stat) == record.stamp and stat and os.time() - stat.mtime.sec > 1 then return end
  local ok, bytes = pcall(read_file, record.path)
  local disk = ok and text.digest(bytes) or nil
  if disk == record.disk then
    record.stamp = stamp_of(stat)
    return
  end
  if is_dirty(record) then
    record.is_other = disk ~= digest_of(record)
    return
  end
  if not ok or not text.is_text(bytes) then
    buffers.close(record)
    return
  end
  buffers.reload(record)
end

-- Reads the file of a buffer anew.
function buffers.reload(record, reason)
  buffers.unmodelined(function()
    api.nvim_buf_call(record.buffer, function() vim.cmd('silent lockmarks edit!') end)
  end)
  if not api.nvim_buf_is_loaded(record.buffer) then
    refuse('failed', ('Neovim cannot read %s anew'):format(quoted(record.path)))
  end
  record.steps = {}
  if buffers.now(record, reason or 'disk') then buffers.look_at_disk(record) end
end

-- Has Neovim read a file. What an agent has written into it is not to set the person's options, as a modeline in it
-- would. Returns what Neovim complained about: mostly a plugin that fails at this kind of file, and then the text is
-- there all the same.
function buffers.unmodelined(work)
  local modeline = vim.go.modeline
  vim.go.modeline = false
  local ok, why = pcall(work)
  vim.go.modeline = modeline
  return not ok and tostring(why):match('^[^\n]*') or nil
end

-- Finds the buffer of a text file, as the file is now, or opens one that no window shows. Returns nil and the bytes if
-- it is no text.
function buffers.look(path)
  path = roots.real(path)
  local record = buffers.at(path)
  if record then
    buffers.follow(record)
    record = buffers.at(path)
  end
  if record then
    record.used = uv.now()
    return record
  end
  local bytes = read_file(path)
  if not text.is_text(bytes) then return nil, bytes, path end
  buffers.make_room()
  local buffer, had_swap = fn.bufadd(path), false
  -- Neovim would ask the person what to do about it, and wait.
  local swap = api.nvim_create_autocmd('SwapExists', {
    callback = function()
      had_swap = true
      vim.v.swapchoice = 'q'
    end,
  })
  local why = buffers.unmodelined(function() vim.cmd(('silent call bufload(%d)'):format(buffer)) end)
  api.nvim_del_autocmd(swap)
  if had_swap then
    pcall(api.nvim_buf_delete, buffer, { force = true })
    refuse(
      'failed',
      ('%s has a swap file: another Vim has it open, or died with it; open it by hand once'):format(quoted(path))
    )
  end
  if why and not api.nvim_buf_is_loaded(buffer) then refuse('failed', 'Neovim says: ' .. why) end
  -- The person finds it in `:ls`, and no window shows it.
  vim.bo[buffer].buflisted = true
  record = buffers.meet(buffer)
  if not record then refuse('failed', ('Neovim does not show %s as a text'):format(quoted(path))) end
  record.is_ours = true
  return record
end

-- The same of what has to be a text.
function buffers.open(path)
  local record = buffers.look(path)
  return record or wrong(('%s: it is no text; write_file replaces it as a whole'):format(quoted(path)))
end

function buffers.make_room()
  local idle, count = {}, 0
  for _, record in ipairs(buffers.all()) do
    if record.is_ours then count = count + 1 end
    if record.is_ours and not is_dirty(record) and #fn.win_findbuf(record.buffer) == 0 then idle[#idle + 1] = record end
  end
  table.sort(idle, function(a, b) return a.used < b.used end)
  for i = 1, math.min(#idle, count - MAX_OPENED + 1) do
    buffers.close(idle[i])
  end
end

-- Closes a buffer. Windows that show it stay, and show another.
function buffers.close(record)
  local buffer = record.buffer
  for _, window in ipairs(fn.win_findbuf(buffer)) do
    local other
    for _, listed in ipairs(fn.getbufinfo({ buflisted = 1 })) do
      if listed.bufnr ~= buffer then other = listed.bufnr end
    end
    api.nvim_win_set_buf(window, other or api.nvim_create_buf(true, false))
  end
  buffers.forget(record)
  vim.cmd(('silent! bdelete! %d'):format(buffer))
end

local function stale(path, version)
  refuse(
    'changed',
    ('%s is at version %d by now; open it again, then make the edit for that'):format(quoted(path), version)
  )
end

-- Ends the undo step that is open, so that what comes next is one of its own. Not while the person inserts into this
-- very buffer: Neovim would lose track of what they type.
local function break_undo(buffer)
  if api.nvim_get_current_buf() == buffer and api.nvim_get_mode().mode:match('^[iR]') then return false end
  api.nvim_buf_call(buffer, function() vim.cmd('let &g:undolevels = &g:undolevels') end)
  return true
end

local function undo_sequence(buffer)
  return api.nvim_buf_call(buffer, function() return fn.undotree().seq_cur end)
end

-- Works out what becomes of a text by edits {first, last, new_text} in bytes of it. All are about the same text.
function buffers.planned(record, edits)
  if record.is_converted then
    refuse(
      'unsupported',
      ('Neovim holds %s in another encoding than it is written in; edit it there'):format(quoted(record.path))
    )
  end
  if not vim.bo[record.buffer].modifiable then
    refuse('failed', ('%s is not modifiable in Neovim (`:set modifiable`)'):format(quoted(record.path)))
  end
  for i, edit in ipairs(edits) do
    edit.number = i - 1
  end
  table.sort(edits, function(a, b)
    if a.first ~= b.first then return a.first < b.first end
    if a.last ~= b.last then return a.last < b.last end
    return a.number < b.number
  end)
  local pieces, done, last = {}, 0, nil
  for _, edit in ipairs(edits) do
    if edit.first < done then wrong(('edits %d and %d overlap'):format(last, edit.number)) end
    pieces[#pieces + 1] = record.text:sub(done + 1, edit.first)
    pieces[#pieces + 1] = edit.new_text
    done, last = edit.last, edit.number
  end
  pieces[#pieces + 1] = record.text:sub(done + 1)
  local new = table.concat(pieces)
  check_size(new)
  if new:find('\0', 1, true) then wrong('a text cannot hold a NUL') end
  return { record = record, version = record.version, edits = edits, text = new }
end

local function split(whole, separator)
  -- A text has one kind of line break in Neovim; what agents write gets the one that the file has.
  if separator ~= '\n' then whole = whole:gsub('\r\n', '\n'):gsub('\r', '\n') end
  return vim.split(whole, '\n', { plain = true })
end

-- Makes changes that were planned: all of them, or none if a text is another by now. Each is one step of Neovim's undo.
function buffers.make(plans, reason)
  for _, plan in ipairs(plans) do
    local now = buffers.now(plan.record)
    if not now then refuse('changed', ('%s was closed meanwhile; open it again'):format(quoted(plan.record.path))) end
    if now.version ~= plan.version then stale(now.path, now.version) end
  end
  local made = {}
  for _, plan in ipairs(plans) do
    local record, buffer = plan.record, plan.record.buffer
    local had_end = record.has_end
    local is_apart = break_undo(buffer)
    local before = undo_sequence(buffer)
    local ok, why = pcall(buffers.put, record, plan)
    if not ok then
      -- Textlock, or a plugin of the person's that objects. What was made is taken back.
      made[#made + 1] = { record = record, sequence = before, has_end = had_end }
      for i = #made, 1, -1 do
        api.nvim_buf_call(made[i].record.buffer, function() vim.cmd('silent! undo ' .. made[i].sequence) end)
        vim.bo[made[i].record.buffer].endofline = made[i].has_end
        buffers.now(made[i].record, 'undo')
      end
      refuse('failed', 'Neovim takes no change now; try again. It says: ' .. tostring(why), 1000)
    end
    is_apart = break_undo(buffer) and is_apart
    made[#made + 1] = { record = record, sequence = before, has_end = had_end }
    local after = undo_sequence(buffer)
    -- A step that holds the person's typing as well is not an agent's to take back.
    if is_apart then record.steps[after] = { before = had_end, after = vim.bo[buffer].endofline } end
    buffers.now(record, reason)
  end
  return made
end

-- Puts the new text into a buffer: edit by edit, so that marks and cursors stay where they belong; where an edit
-- touches the break at the very end, which is no place in Neovim, the lines that differ.
function buffers.put(record, plan)
  local buffer, new = record.buffer, plan.text
  local bom = record.bomb and '\239\187\191' or ''
  local starts, at = {}, #bom
  for i, words in ipairs(record.lines) do
    starts[i] = at
    at = at + #words + #record.separator
  end
  local inner_end = at - #record.separator
  local is_inside = not record.is_empty and (new:sub(-1) == '\n') == record.has_end and record.separator == '\n'
  for _, edit in ipairs(plan.edits) do
    is_inside = is_inside and edit.first >= #bom and edit.last <= inner_end
  end
  if is_inside then
    local function spot(offset)
      local low, high = 1, #starts
      while low < high do
        local middle = math.floor((low + high + 1) / 2)
        if starts[middle] <= offset then
          low = middle
        else
          high = middle - 1
        end
      end
      return low - 1, offset - starts[low]
    end
    for i = #plan.edits, 1, -1 do
      local edit = plan.edits[i]
      local row, column = spot(edit.first)
      local last_row, last_column = spot(edit.last)
      api.nvim_buf_set_text(buffer, row, column, last_row, last_column, split(edit.new_text, '\n'))
    end
  else
    if bom ~= '' and new:sub(1, 3) ~= bom then vim.bo[buffer].bomb = false end
    if new:sub(1, 3) == '\239\187\191' and bom ~= '' then new = new:sub(4) end
    local lines = split(new, record.separator)
    local has_end = #lines > 1 and lines[#lines] == ''
    if has_end then lines[#lines] = nil end
    if new == '' then
      api.nvim_buf_set_lines(buffer, 0, -1, true, {})
    else
      local old, first, last = record.lines, 0, 0
      while first < math.min(#old, #lines) - 1 and old[first + 1] == lines[first + 1] do
        first = first + 1
      end
      while last < math.min(#old, #lines) - first - 1 and old[#old - last] == lines[#lines - last] do
        last = last + 1
      end
      api.nvim_buf_set_lines(buffer, first, #old - last, true, vim.list_slice(lines, first + 1, #lines - last))
      vim.bo[buffer].endofline = has_end
    end
  end
  local now = contents(buffer)
  if not now or (record.separator == '\n' and now.text ~= plan.text) then
    error('the buffer does not hold what was put into it', 0)
  end
end

-- Goes back or forth in Neovim's own undo, over steps that agents have made. What the person did is theirs to undo.
function buffers.retrace(record, count, is_back)
  local buffer = record.buffer
  local tree = api.nvim_buf_call(buffer, function() return fn.undotree() end)
  local walk, at = {}, nil
  for i, entry in ipairs(tree.entries) do
    if entry.seq == tree.seq_cur then at = i end
  end
  if is_back then
    for i = at or 0, 1, -1 do
      walk[#walk + 1] = tree.entries[i].seq
    end
  else
    for i = (at or 0) + 1, #tree.entries do
      walk[#walk + 1] = tree.entries[i].seq
    end
  end
  local there_are = 0
  while walk[there_are + 1] and record.steps[walk[there_are + 1]] do
    there_are = there_are + 1
  end
  if count > there_are then
    local word = is_back and 'undone' or 'redone'
    local why = walk[there_are + 1] and "; the one before was made in Neovim and is the person's" or ''
    wrong(('%d changes can be %s, not %d%s'):format(there_are, word, count, why))
  end
  break_undo(buffer)
  api.nvim_buf_call(buffer, function()
    for _ = 1, count do
      vim.cmd(is_back and 'silent undo' or 'silent redo')
    end
  end)
  for i = 1, count do
    local step = record.steps[walk[i]]
    vim.bo[buffer].endofline = is_back and step.before or not is_back and step.after
  end
  buffers.now(record, is_back and 'undo' or 'redo')
end

-- Writes a buffer to its file, unless somebody else has written there.
function buffers.save(record, overwrites)
  local path = record.path
  if roots.real(path) ~= path then refuse('changed', ('%s leads elsewhere now; look again'):format(quoted(path))) end
  local stat = stat_of(path)
  local disk = stat and text.digest((read_file(path))) or nil
  if disk ~= record.disk and disk ~= digest_of(record) and not overwrites then
    local why = disk and 'somebody else has changed the file; `overwrite` replaces what they wrote'
      or 'somebody else has removed the file; `overwrite` makes it again'
    refuse('changed', ('%s: %s; look again, then try again'):format(quoted(path), why))
  end
  if (stat and not uv.fs_access(path, 'W')) or vim.bo[record.buffer].readonly then
    refuse('failed', ('%s is read-only'):format(quoted(path)))
  end
  -- What was told is what is written: Neovim would put a line break at the end.
  local options = vim.bo[record.buffer]
  local fixes = options.fixendofline
  options.fixendofline = false
  -- A file that is newer than when Neovim read it would have Neovim ask the person, even with `!`, and wait. Whether it
  -- may be replaced was decided above, so it is out of the way until the new one is there.
  local aside = stat and stamp_of(stat) ~= record.read_stamp and ('%s.prism-%d'):format(path, uv.os_getpid()) or nil
  if aside and not uv.fs_rename(path, aside) then aside = nil end
  local ok, why = pcall(api.nvim_buf_call, record.buffer, function() vim.cmd('silent keepalt lockmarks write!') end)
  if aside and ok then
    uv.fs_chmod(path, stat.mode % 4096)
    uv.fs_unlink(aside)
  elseif aside then
    uv.fs_rename(aside, path)
  end
  options.fixendofline = fixes
  buffers.now(record, 'edit')
  if not ok then refuse('failed', ('%s cannot be written. Neovim says: %s'):format(quoted(path), tostring(why))) end
  buffers.look_at_disk(record)
  return {
    path = path,
    version = record.version,
    digest = digest_of(record),
    bytes = #record.text,
    is_dirty = is_dirty(record),
  }
end

-- Refuses if there is unsaved text at or beneath a path that would be lost.
function buffers.refuse_dirty(path)
  for _, record in ipairs(buffers.all()) do
    if is_beneath(record.path, path) and is_dirty(record) then
      refuse(
        'changed',
        ('%s has unsaved changes; save_buffer writes them, close_buffer with `discard` drops them'):format(
          quoted(record.path)
        )
      )
    end
  end
end

-- === What is told ===

-- The number of the last event of this connection.
voice.seq = 0

function voice.tell(event, data)
  if not line.is_registered then return end
  voice.seq = voice.seq + 1
  line.send({ type = 'event', event = event, seq = voice.seq, data = data })
end

-- Edits that agents are told along with a change, and those that the daemon makes on the text that it keeps, in bytes.
local MAX_TOLD, MAX_SENT = 8 * 1024, 64 * 1024

-- Tells of a change: with the edits against the version before, and with all of the text where the daemon does not have
-- that version.
function voice.changed(record, before, reason)
  local data = {
    path = record.path,
    version = record.version,
    is_dirty = is_dirty(record),
    reason = reason or 'edit',
    by = commands.session,
  }
  local edit = voice.edit_between(before, record)
  local has_base = record.mirrored == before.version
  record.mirrored = data.is_dirty and record.version or nil
  if edit and #edit.new_text <= ((has_base and data.is_dirty) and MAX_SENT or MAX_TOLD) then data.edits = { edit } end
  if data.is_dirty then
    if has_base and data.edits then
      data.base_version = before.version
    else
      data.text = record.text
    end
  end
  voice.tell('buffer_changed', data)
end

-- The lines that differ, as one edit of the text before. Of texts whose lines are not Neovim's lines there is none.
function voice.edit_between(before, now)
  if now.separator ~= '\n' or now.bomb or before.text:find('\r', 1, true) then return nil end
  local old, new, first, last = before.lines, now.lines, 0, 0
  local most = math.min(#old, #new)
  while first < most - 1 and old[first + 1] == new[first + 1] do
    first = first + 1
  end
  local is_to_the_end = before.text == '' or now.text == '' or before.has_end ~= now.has_end
  while not is_to_the_end and last < most - first - 1 and old[#old - last] == new[#new - last] do
    last = last + 1
  end
  local start = { line = first, character = 0 }
  if last > 0 then
    local words = table.concat(new, '\n', first + 1, #new - last) .. '\n'
    if first == #new - last then words = '' end
    return { range = { start = start, ['end'] = { line = #old - last, character = 0 } }, new_text = words }
  end
  local offset = 0
  for i = 1, first do
    offset = offset + #new[i] + 1
  end
  local ends = place.at(before.text, place.lines(before.text), #before.text)
  return { range = { start = start, ['end'] = ends }, new_text = now.text:sub(offset + 1) }
end

-- How long changes are gathered before they are told. Each time there are four events at most, so it stays within 500 a
-- second.
local PAUSE_MS = 10

-- Tells what has changed, a moment from now.
function voice.soon()
  if voice.is_waiting then return end
  voice.is_waiting = true
  vim.defer_fn(function()
    voice.is_waiting = false
    for _, record in ipairs(buffers.all()) do
      buffers.now(record)
    end
    voice.look_at_window()
  end, PAUSE_MS)
end

-- Tells where the person is, if that is another place than was told last.
function voice.look_at_window()
  local buffer, window = api.nvim_get_current_buf(), api.nvim_get_current_win()
  local record = buffers.known[buffer] and buffers.now(buffers.known[buffer])
  if not record then return end
  local by, told = commands.session, voice.told or {}
  local position = buffers.cursor_in(record, window)
  local at = ('%s %d %d'):format(record.path, position.line, position.character)
  if told.cursor ~= at then voice.tell('cursor_moved', { path = record.path, position = position, by = by }) end
  local range = buffers.selection_in(record, window)
  local selected = range
    and vim.json.encode({
      record.path,
      range.start.line,
      range.start.character,
      range['end'].line,
      range['end'].character,
    })
  if selected and told.selection ~= selected then
    voice.tell('selection_changed', { path = record.path, range = range, by = by })
  end
  local first, last = fn.line('w0', window) - 1, fn.line('w$', window) - 1
  local seen = ('%s %d %d'):format(record.path, first, last)
  if told.viewport ~= seen then
    voice.tell('viewport_changed', { path = record.path, first_line = first, last_line = last, by = by })
  end
  voice.told = { cursor = at, selection = selected, viewport = seen }
end

-- All that is open, with the text of what is unsaved. A message has a bound: what does not fit follows by itself.
function voice.state()
  local listed, later, room = {}, {}, MAX_TEXT
  for _, record in ipairs(buffers.all()) do
    local dirty = is_dirty(record)
    local fits = dirty and #record.text <= room
    if fits then room = room - #record.text end
    if dirty and not fits then later[#later + 1] = record end
    record.mirrored = fits and record.version or nil
    listed[#listed + 1] =
      { path = record.path, version = record.version, is_dirty = dirty, text = fits and record.text or nil }
  end
  line.send({ type = 'state', seq = voice.seq, buffers = listed })
  for _, record in ipairs(later) do
    record.mirrored = record.version
    voice.tell('buffer_changed', { path = record.path, version = record.version, is_dirty = true, text = record.text })
  end
end

-- === Verbs: files ===

local function has_ui() return #api.nvim_list_uis() > 0 end

local function count_lines(whole)
  local count = select(2, whole:gsub('\n', '\n'))
  return count + ((whole ~= '' and whole:sub(-1) ~= '\n') and 1 or 0)
end

function verbs.open_file(args)
  local path = args.text('path')
  local offset, limit = args.number('offset', 0, 2 ^ 32 - 1) or 0, args.number('limit', 1, 2 ^ 32 - 1)
  args.done()
  local record, bytes, real = buffers.look(path)
  if not record then
    return {
      path = real,
      bytes = #bytes,
      digest = text.digest(bytes),
      encoding = 'base64',
      content = text.to_base64(bytes),
      version = NIL,
      is_dirty = false,
      language = NIL,
    }
  end
  local answer = {
    path = record.path,
    bytes = #record.text,
    digest = digest_of(record),
    encoding = 'utf-8',
    lines = count_lines(record.text),
    version = record.version,
    is_dirty = is_dirty(record),
    language = language_of(record.path, record.buffer),
    content = record.text,
  }
  if offset > 0 or limit then
    local at, last = 1, nil
    for _ = 1, offset do
      at = (record.text:find('\n', at, true) or #record.text) + 1
    end
    last = at - 1
    for _ = 1, math.min(limit or 2 ^ 32, answer.lines) do
      last = record.text:find('\n', last + 1, true) or #record.text
    end
    answer.content, answer.offset = record.text:sub(at, last), offset
    answer.is_partial = offset > 0 or last < #record.text
  end
  return answer
end

function verbs.create_file(args)
  local path, content, makes_parents = args.text('path'), args.content('content'), args.flag('parents')
  local kind = args.maybe_text('kind') or 'file'
  args.done()
  if kind ~= 'file' and kind ~= 'folder' then wrong(('`kind` is "file" or "folder", not %s'):format(quoted(kind))) end
  if kind == 'folder' and content then wrong('a folder has no `content`') end
  path = roots.named(path)
  local taken = ('%s: it is already there; write_file and edit_buffer change what is there'):format(quoted(path))
  if uv.fs_lstat(path) then wrong(taken) end
  local folder = path:match('^(.*)/')
  if not stat_of(folder) then
    if not makes_parents then
      refuse('not_found', ('%s: the folder for it is not there; `parents` makes it'):format(quoted(path)))
    end
    local ok, why = pcall(fn.mkdir, folder, 'p')
    if not ok then refuse('failed', ('%s cannot be made: %s'):format(quoted(folder), tostring(why))) end
  end
  if kind == 'folder' then
    local made, why, name = uv.fs_mkdir(path, 493)
    if not made then told_error(path, why, name) end
    return { path = path }
  end
  content = content or ''
  check_size(content)
  local made, why, name = create_file(path, content)
  if not made and name == 'EEXIST' then wrong(taken) end
  if not made then told_error(path, why, name) end
  return { path = path, bytes = #content, digest = text.digest(content) }
end

function verbs.write_file(args)
  local path = args.text('path')
  local content = args.content('content') or wrong('`content` is missing: a string')
  local made_for = args.maybe_text('digest')
  args.done()
  check_size(content)
  path = roots.real(path)
  buffers.refuse_dirty(path)
  local bytes, stat = read_file(path)
  if made_for and made_for ~= text.digest(bytes) then
    refuse(
      'changed',
      ('%s: it is not the file that the change was made for; look again, then try again'):format(quoted(path))
    )
  end
  replace_file(path, content, stat)
  local record = buffers.at(path)
  if record and text.is_text(content) then
    buffers.reload(record, 'edit')
  elseif record then
    buffers.close(record)
  end
  return { path = path, bytes = #content, digest = text.digest(content) }
end

local KINDS = { file = 'file', directory = 'folder', link = 'link' }

-- Closes what was at or beneath a path that is no more. Unsaved text stays, without a file.
local function removed(path)
  for _, record in ipairs(buffers.all()) do
    if is_beneath(record.path, path) then
      if is_dirty(record) then
        record.is_other = true
      else
        buffers.close(record)
      end
    end
  end
end

function verbs.delete_file(args)
  local path = args.text('path')
  args.done()
  path = roots.named(path)
  local stat = uv.fs_lstat(path)
  if not stat then not_found(path) end
  buffers.refuse_dirty(path)
  local gone, why, name
  if stat.type == 'directory' then
    gone, why, name = uv.fs_rmdir(path)
  else
    gone, why, name = uv.fs_unlink(path)
  end
  if name == 'ENOTEMPTY' or name == 'EEXIST' then
    wrong(('%s: the folder is not empty; delete what is in it first'):format(quoted(path)))
  end
  if not gone then told_error(path, why, name) end
  removed(path)
  return { path = path, what = KINDS[stat.type] or 'special' }
end

function verbs.rename_file(args)
  local path, new_path, replaces = args.text('path'), args.text('new_path'), args.flag('overwrite')
  args.done()
  path, new_path = roots.named(path), roots.named(new_path)
  if not uv.fs_lstat(path) then not_found(path) end
  if uv.fs_lstat(new_path) and not replaces then
    wrong(('%s: it is already there; `overwrite` replaces it'):format(quoted(new_path)))
  end
  -- What the new name held is lost, and with it no text that somebody has not saved.
  buffers.refuse_dirty(new_path)
  local made, why, name = uv.fs_rename(path, new_path)
  if not made then told_error(new_path, why, name) end
  removed(new_path)
  for _, record in ipairs(buffers.all()) do
    if is_beneath(record.path, path) then buffers.move(record, new_path .. record.path:sub(#path + 1)) end
  end
  -- The daemon takes the unsaved text along by this.
  voice.tell('file_renamed', { path = path, new_path = new_path, by = commands.session })
  return { path = path, new_path = new_path }
end

-- Has a buffer go along with its file to another name, with its unsaved text.
function buffers.move(record, path)
  local buffer, unsaved = record.buffer, is_dirty(record) and record.text or nil
  record.path = path
  api.nvim_buf_set_name(buffer, path)
  -- Neovim keeps the old name as a buffer of its own.
  for _, other in ipairs(api.nvim_list_bufs()) do
    if
      other ~= buffer
      and not buffers.known[other]
      and not api.nvim_buf_is_loaded(other)
      and api.nvim_buf_get_name(other) ~= ''
      and not stat_of(api.nvim_buf_get_name(other))
    then
      pcall(api.nvim_buf_delete, other, { force = true })
    end
  end
  -- Read anew, or Neovim takes the buffer for one that was never read from there, and `:write` would refuse. Nobody is
  -- told of the moment in between.
  local before = { text = record.text, tick = record.tick }
  buffers.unmodelined(function()
    api.nvim_buf_call(buffer, function() vim.cmd('silent lockmarks edit!') end)
  end)
  buffers.look_at_disk(record)
  local now = unsaved and contents(buffer)
  if now and now.text ~= unsaved then
    local held = { buffer = buffer, path = path, steps = {} }
    take_in(held, now)
    buffers.put(held, buffers.planned(held, { { first = 0, last = #now.text, new_text = unsaved } }))
  end
  record.steps, record.text = {}, before.text
  buffers.now(record)
end

-- === Verbs: buffers ===

function verbs.get_buffers(args)
  args.done()
  local listed, active = {}, api.nvim_get_current_buf()
  for _, record in ipairs(buffers.all()) do
    record = buffers.now(record)
    if record then
      buffers.follow(record)
      listed[#listed + 1] = {
        path = record.path,
        version = record.version,
        is_dirty = is_dirty(record),
        digest = digest_of(record),
        language = language_of(record.path, record.buffer),
        lines = count_lines(record.text),
        is_changed_on_disk = record.is_other == true,
        is_active = record.buffer == active,
      }
    end
  end
  return { buffers = listed, ui = has_ui() }
end

local function told_change(plan)
  local record = plan.record
  return {
    path = record.path,
    version = record.version,
    digest = digest_of(record),
    is_dirty = is_dirty(record),
    edits = #plan.edits,
  }
end

-- Which text an order is for: refused if that is another by now.
local function asked(args)
  local path, version, digest = args.text('path'), args.version(), args.maybe_text('digest')
  return path,
    version ~= nil or digest ~= nil,
    function()
      local record = buffers.open(path)
      if (version and version ~= record.version) or (digest and digest ~= digest_of(record)) then
        stale(path, record.version)
      end
      return record
    end
end

-- One edit as it was given.
local function read_edit(given)
  local args = args_of(given)
  local range, old_text, new_text = args.range('range'), args.maybe_text('old_text'), args.text('new_text')
  args.done()
  if not range and not old_text then wrong('it needs a `range` or an `old_text`') end
  if not range and old_text == '' then wrong('`old_text` is empty') end
  return { range = range, old_text = old_text, new_text = new_text }
end

-- Says in a refusal which of several it is about.
local function about(what, work, ...)
  local ok, result = pcall(work, ...)
  if ok then return result end
  if type(result) == 'table' and result.message then result.message = ('%s: %s'):format(what, result.message) end
  error(result, 0)
end

local function read_edits(args)
  local listed, old_text, new_text = args.take('edits'), args.take('old_text'), args.take('new_text')
  if listed == nil and old_text == nil and new_text == nil then return nil end
  if listed ~= nil then
    array('edits', listed)
    if old_text ~= nil or new_text ~= nil then wrong('give `edits`, or `old_text` and `new_text`, not both') end
  else
    listed = { { old_text = old_text, new_text = new_text } }
  end
  if #listed < 1 or #listed > MAX_EDITS then
    wrong(('`edits` must hold 1 to %d edits, not %d'):format(MAX_EDITS, #listed))
  end
  local edits = {}
  for i, edit in ipairs(listed) do
    if kind_of(edit) ~= 'an object' then wrong(('edit %d must be an object, not %s'):format(i - 1, kind_of(edit))) end
    edits[i] = about(('edit %d'):format(i - 1), read_edit, edit)
  end
  return edits
end

-- Where an edit is in a text, in bytes.
local function placed(record, edit)
  local whole, lines = record.text, places_of(record)
  if edit.range then
    local first, why = place.offset(whole, lines, edit.range.start)
    local last, why_not = place.offset(whole, lines, edit.range['end'])
    if not first or not last then wrong(why or why_not) end
    if first > last then wrong('`range` ends before it starts') end
    if edit.old_text and whole:sub(first + 1, last) ~= edit.old_text then
      wrong('what stands in `range` is not `old_text`; open the file again')
    end
    return { first = first, last = last, new_text = edit.new_text }
  end
  local at = whole:find(edit.old_text, 1, true) or wrong('`old_text` is not in the text; open it again')
  -- It may overlap with itself, too.
  if whole:find(edit.old_text, at + 1, true) then
    wrong('`old_text` is in the text more than once; give more of what stands around it')
  end
  return { first = at - 1, last = at - 1 + #edit.old_text, new_text = edit.new_text }
end

local function plan_of(record, edits, names_version)
  for _, edit in ipairs(edits) do
    if edit.range and not edit.old_text and not names_version then
      wrong(
        'a `range` is about one version of the text: give `version` (or `digest`) as open_file told it, or the '
          .. '`old_text` that stands there'
      )
    end
  end
  local found = {}
  for i, edit in ipairs(edits) do
    found[i] = about(('edit %d'):format(i - 1), placed, record, edit)
  end
  return buffers.planned(record, found)
end

local function refuse_twice(plans)
  local seen = {}
  for _, plan in ipairs(plans) do
    if seen[plan.record] then wrong(('%s is named twice'):format(quoted(plan.record.path))) end
    seen[plan.record] = true
  end
end

function verbs.edit_buffer(args)
  local files = args.take('files')
  if files ~= nil then
    args.done()
    array('files', files)
    if #files < 1 or #files > MAX_FILES then
      wrong(('`files` must hold 1 to %d files, not %d'):format(MAX_FILES, #files))
    end
    local plans = {}
    for i, file in ipairs(files) do
      plans[i] = about(('file %d'):format(i - 1), function()
        local given = members('files', file)
        local _, names_version, open = asked(given)
        local edits = read_edits(given) or wrong('`edits` is missing')
        given.done()
        return plan_of(open(), edits, names_version)
      end)
    end
    refuse_twice(plans)
    buffers.make(plans, 'edit')
    return { files = vim.tbl_map(told_change, plans) }
  end
  local _, names_version, open = asked(args)
  local undo, redo = args.number('undo', 1, MAX_EDITS), args.number('redo', 1, MAX_EDITS)
  local edits = read_edits(args)
  args.done()
  local given = (undo and 1 or 0) + (redo and 1 or 0) + (edits and 1 or 0)
  if given == 0 then
    wrong('`edits` is missing: an array of {range, new_text} or {old_text, new_text}; or `undo`, or `redo`')
  end
  if given > 1 then wrong('give one of `edits`, `undo` and `redo`') end
  local record = open()
  if edits then
    local plan = plan_of(record, edits, names_version)
    buffers.make({ plan }, 'edit')
    return told_change(plan)
  end
  buffers.retrace(record, undo or redo, undo ~= nil)
  return told_change({ record = record, edits = { true } })
end

function verbs.save_buffer(args)
  local path, saves_all = args.maybe_text('path'), args.flag('all')
  local version, overwrites = args.version(), args.flag('overwrite')
  args.done()
  if (path ~= nil) == saves_all or (saves_all and version) then wrong('give `path`, or `all`: true') end
  if path then
    local record = buffers.open(path)
    if version and version ~= record.version then
      refuse(
        'changed',
        ('%s: version %d was to be saved, and it is at %d'):format(quoted(path), version, record.version)
      )
    end
    return buffers.save(record, overwrites)
  end
  local saved = {}
  for _, record in ipairs(buffers.all()) do
    if is_dirty(record) then
      local ok, told = pcall(buffers.save, record, overwrites)
      if not ok then
        told = { path = record.path, error = { code = told.code or 'failed', message = told.message or told } }
      end
      saved[#saved + 1] = told
    end
  end
  return { saved = saved }
end

function verbs.close_buffer(args)
  local path, discards = args.text('path'), args.flag('discard')
  args.done()
  local record = buffers.at(roots.real(path))
  if not record then refuse('not_found', ('%s is not open'):format(quoted(path))) end
  local was_dirty = is_dirty(record)
  if was_dirty and not discards then
    refuse(
      'changed',
      ('%s: it has unsaved changes; save_buffer writes them, `discard` drops them'):format(quoted(path))
    )
  end
  buffers.close(record)
  return { path = record.path, discarded = was_dirty }
end

-- === Verbs: windows ===

-- How long the person's keys rest before a window is changed under their hands, and how long is waited for that.
local QUIET_MS, PATIENCE_MS = 1000, 5000

-- Waits until the person does not type: the next key would go into another text.
local function wait_for_quiet()
  local began = uv.now()
  while commands.typed_at and uv.now() - commands.typed_at < QUIET_MS do
    if uv.now() - began > PATIENCE_MS then refuse('rate_limited', 'the person is typing in Neovim; try again', 2000) end
    commands.await(function(resume)
      local timer = uv.new_timer()
      timer:start(100, 0, resume)
      return function() timer:close() end
    end)
  end
  if api.nvim_get_mode().mode:match('^[iR]') then vim.cmd('stopinsert') end
end

local function is_plain(window)
  local buffer = api.nvim_win_get_buf(window)
  return api.nvim_win_get_config(window).relative == '' and vim.bo[buffer].buftype == ''
end

-- Shows a buffer: in a window that has it, else in the current one, or where that is none for files, in another.
local function show(record)
  local window
  for _, candidate in ipairs(api.nvim_tabpage_list_wins(0)) do
    if api.nvim_win_get_buf(candidate) == record.buffer and is_plain(candidate) then window = candidate end
  end
  if not window then
    window = api.nvim_get_current_win()
    if not is_plain(window) then
      window = nil
      for _, candidate in ipairs(api.nvim_tabpage_list_wins(0)) do
        if is_plain(candidate) then window = candidate end
      end
      if not window then
        vim.cmd('silent split')
        window = api.nvim_get_current_win()
      end
    end
  end
  api.nvim_set_current_win(window)
  if api.nvim_win_get_buf(window) ~= record.buffer then
    local ok, why = pcall(api.nvim_win_set_buf, window, record.buffer)
    if not ok then refuse('failed', 'Neovim keeps what the window shows: ' .. tostring(why)) end
  end
  record.is_ours = false
  return window
end

function verbs.switch_buffer(args)
  local path = args.text('path')
  args.done()
  local record = buffers.open(path)
  wait_for_quiet()
  local window = show(record)
  voice.switched(record, window)
  return { path = record.path, pane = window, is_active = true, ui = has_ui() }
end

-- Tells once which text is looked at.
function voice.switched(record, window)
  local at = ('%d %d'):format(window, record.buffer)
  if voice.active == at then return end
  voice.active = at
  voice.tell('tab_switched', { path = record.path, pane = window, by = commands.session })
end

function verbs.split_pane(args)
  local path, direction = args.maybe_text('path'), args.maybe_text('direction') or 'right'
  args.done()
  if direction ~= 'right' and direction ~= 'down' then
    wrong(('`direction` is "right" or "down", not %s'):format(quoted(direction)))
  end
  local record = path and buffers.open(path) or buffers.known[api.nvim_get_current_buf()]
  if not record then wrong('no buffer is active; name one by `path`') end
  if #api.nvim_tabpage_list_wins(0) >= MAX_PANES then
    wrong(('there are %d panes already; close a buffer to close its panes'):format(MAX_PANES))
  end
  wait_for_quiet()
  local ok, why = pcall(vim.cmd, direction == 'right' and 'silent rightbelow vsplit' or 'silent rightbelow split')
  if not ok then refuse('failed', 'Neovim has no room for a further window: ' .. tostring(why)) end
  local pane, panes = api.nvim_get_current_win(), {}
  api.nvim_win_set_buf(pane, record.buffer)
  record.is_ours = false
  for _, window in ipairs(api.nvim_tabpage_list_wins(0)) do
    local shown = buffers.known[api.nvim_win_get_buf(window)]
    if shown then
      local way = window == pane and direction or NIL
      panes[#panes + 1] = { id = window, path = shown.path, direction = way, is_active = window == pane }
    end
  end
  voice.split(record, pane, direction)
  return { pane = pane, panes = panes, ui = has_ui() }
end

function voice.split(record, pane, direction)
  voice.panes = voice.panes or {}
  if voice.panes[pane] then return end
  voice.panes[pane] = true
  voice.tell('pane_split', { path = record.path, pane = pane, direction = direction, by = commands.session })
end

-- The byte of a place in one of Neovim's lines, told as a place of the text.
local function told_place(record, row, column)
  local offset = record.bomb and 3 or 0
  for i = 1, math.min(row, #record.lines) do
    offset = offset + #record.lines[i] + #record.separator
  end
  local words = record.lines[row + 1]
  return place.at(record.text, places_of(record), offset + math.min(column, words and #words or 0))
end

-- The other way round.
local function spot_of(record, position)
  local offset, why = place.offset(record.text, places_of(record), position)
  if not offset then wrong(why) end
  local at = record.bomb and 3 or 0
  for i, words in ipairs(record.lines) do
    if offset <= at + #words or i == #record.lines then return i - 1, math.max(0, math.min(offset - at, #words)) end
    at = at + #words + #record.separator
  end
end

function buffers.cursor_in(record, window)
  local at = window and api.nvim_win_get_cursor(window) or api.nvim_buf_get_mark(record.buffer, '"')
  return told_place(record, math.max(at[1], 1) - 1, at[2])
end

-- What the person, or an agent for them, has selected in the current window; nil if nothing is.
function buffers.selection_in(record, window)
  local mode = api.nvim_get_mode().mode:sub(1, 1)
  if window ~= api.nvim_get_current_win() or not mode:match('[vV\22]') then return nil end
  local from, to = fn.getpos('v'), fn.getpos('.')
  local first, last = { from[2] - 1, from[3] - 1 }, { to[2] - 1, to[3] - 1 }
  if last[1] < first[1] or (last[1] == first[1] and last[2] < first[2]) then
    first, last = last, first
  end
  if mode == 'V' then
    first[2], last[2] = 0, #(record.lines[last[1] + 1] or '')
  elseif vim.o.selection ~= 'exclusive' then
    -- Neovim's end is the last character, ours is behind it; behind the last one of a line it is the line break.
    local words = record.lines[last[1] + 1] or ''
    if last[2] >= #words and record.lines[last[1] + 2] then
      last = { last[1] + 1, 0 }
    else
      last[2] = math.min(last[2] + width_of((words:byte(last[2] + 1) or 0)), #words)
    end
  end
  return { start = told_place(record, first[1], first[2]), ['end'] = told_place(record, last[1], last[2]) }
end

local function looked_at(path)
  local record = path and buffers.open(path) or buffers.known[api.nvim_get_current_buf()]
  if not record then refuse('not_found', 'no buffer is active; name one by `path`, or switch_buffer') end
  local window
  for _, candidate in ipairs(fn.win_findbuf(record.buffer)) do
    window = window or candidate
  end
  if api.nvim_get_current_buf() == record.buffer then window = api.nvim_get_current_win() end
  return buffers.now(record), window
end

function verbs.get_cursor_pos(args)
  local path = args.maybe_text('path')
  args.done()
  local record, window = looked_at(path)
  return { path = record.path, position = buffers.cursor_in(record, window), ui = has_ui() }
end

function verbs.set_cursor_pos(args)
  local path = args.text('path')
  local position = args.position('position') or wrong('`position` is missing: {line, character}')
  local selection = args.range('selection')
  args.done()
  local record = buffers.open(path)
  local row, column = spot_of(record, position)
  local first_row, first, last_row, last
  if selection then
    first_row, first = spot_of(record, selection.start)
    last_row, last = spot_of(record, selection['end'])
  end
  wait_for_quiet()
  local window = show(record)
  -- A selection of before ends with this.
  if api.nvim_get_mode().mode:match('^[vV\22]') then vim.cmd('normal! \27') end
  if selection and (first_row ~= last_row or first ~= last) then
    if vim.o.selection ~= 'exclusive' then
      if last == 0 and last_row > first_row then
        last_row, last = last_row - 1, #record.lines[last_row]
      else
        local words = record.lines[last_row + 1]
        repeat
          last = last - 1
        until last <= 0 or words:byte(last + 1) < 0x80 or words:byte(last + 1) >= 0xC0
      end
    end
    fn.setpos("'<", { 0, first_row + 1, first + 1, 0 })
    fn.setpos("'>", { 0, last_row + 1, last + 1, 0 })
    vim.cmd('normal! gv')
    -- Neovim's selection ends at the cursor; it is put at the end that was asked for, if it was one of the two.
    if selection.start.line == position.line and selection.start.character == position.character then
      vim.cmd('normal! o')
    end
  else
    api.nvim_win_set_cursor(window, { row + 1, column })
  end
  local told = buffers.cursor_in(record, window)
  voice.look_at_window()
  return { path = record.path, position = told, ui = has_ui() }
end

function verbs.get_selection(args)
  local path = args.maybe_text('path')
  args.done()
  local record, window = looked_at(path)
  local cursor = buffers.cursor_in(record, window)
  local range = buffers.selection_in(record, window) or { start = cursor, ['end'] = cursor }
  local lines = places_of(record)
  local first, last = place.offset(record.text, lines, range.start), place.offset(record.text, lines, range['end'])
  return { path = record.path, range = range, text = record.text:sub(first + 1, last), ui = has_ui() }
end

function verbs.sync_viewport(args)
  local path = args.text('path')
  local first, last = args.number('first_line', 0, 2 ^ 32 - 1), args.number('last_line', 0, 2 ^ 32 - 1)
  args.done()
  if first and last and first > last then wrong('`first_line` comes after `last_line`') end
  local record, window = looked_at(path)
  if first or last then
    wait_for_quiet()
    window = show(record)
    local height, count = api.nvim_win_get_height(window), #record.lines
    local top = math.min(first or math.max(last - height + 1, 0), count - 1)
    api.nvim_win_call(window, function()
      local cursor = math.max(top + 1, math.min(fn.line('.'), top + height))
      fn.winrestview({ topline = top + 1, lnum = math.min(cursor, count), col = 0 })
    end)
  elseif not window then
    refuse('not_found', ('no window shows %s; switch_buffer does'):format(quoted(path)))
  end
  local told =
    { path = record.path, first_line = fn.line('w0', window) - 1, last_line = fn.line('w$', window) - 1, ui = has_ui() }
  voice.told = vim.tbl_extend('force', voice.told or {}, { viewport = (first or last) and '' or nil })
  voice.look_at_window()
  return told
end

-- === Verbs: search ===

local MOST_MATCHES, USUAL_MATCHES = 10000, 1000
-- Files that are gone through for one command. Of more, the answer says that it is not complete.
local MAX_WALKED = 50000

-- Rust's expressions, which agents write, as Vim's. What is not the same in both is refused, so that no match is
-- another than the built-in editor's. Returns the pattern, the names of groups, and whether it asks what a letter is.
local function vim_pattern(expression)
  local out, at, groups, names, asks = {}, 1, 0, {}, false
  local function no(what)
    refuse('unsupported', ('Neovim has nothing like %s in `pattern`; write it without, or use `text`'):format(what))
  end
  local function literal(letter)
    local special = { ['\\'] = '\\\\', ['^'] = '\\%d94', ['$'] = '\\%d36' }
    return special[letter] or letter
  end
  local CLASSES = { d = '0-9', w = '0-9A-Za-z_', s = ' \t\11\12\r' }
  local ESCAPES = { t = '\t', r = '\r', f = '\12', v = '\11', a = '\7' }
  local function class()
    local items, is_not = {}, expression:sub(at, at) == '^'
    if is_not then at = at + 1 end
    local is_first = true
    while true do
      local letter = expression:match('^[%z\1-\127\194-\244][\128-\191]*', at)
      if not letter then wrong('`pattern` is no expression that can be looked for: unclosed character class') end
      if letter == ']' and not is_first then break end
      is_first = false
      if letter == '[' or expression:match('^&&', at) or expression:match('^%-%-', at) then no('sets in sets') end
      at = at + #letter
      if letter == '\\' then
        local escaped = expression:sub(at, at)
        at = at + 1
        if CLASSES[escaped] then
          asks = true
          items[#items + 1] = CLASSES[escaped]
        elseif ESCAPES[escaped] then
          items[#items + 1] = ESCAPES[escaped]
        elseif escaped:match('%p') then
          items[#items + 1] = '\\' .. escaped
        else
          no('\\' .. escaped)
        end
      elseif letter == '-' and expression:sub(at, at) ~= ']' and #items > 0 then
        items[#items + 1] = '-'
      else
        items[#items + 1] = letter:match('^[%^%-%]]$') and '\\' .. letter or letter
      end
    end
    at = at + 1
    return '\\[' .. (is_not and '^' or '') .. table.concat(items) .. ']'
  end
  while at <= #expression do
    local letter = expression:match('^[%z\1-\127\194-\244][\128-\191]*', at)
    at = at + #letter
    local lazy = function()
      if expression:sub(at, at) == '?' then
        at = at + 1
        return true
      end
    end
    if letter == '\\' then
      local escaped = expression:sub(at, at)
      at = at + 1
      if CLASSES[escaped] then
        asks = true
        out[#out + 1] = '\\[' .. CLASSES[escaped] .. ']'
      elseif CLASSES[escaped:lower()] and escaped ~= '' then
        asks = true
        out[#out + 1] = '\\[^' .. CLASSES[escaped:lower()] .. ']'
      elseif escaped == 'b' then
        asks = true
        out[#out + 1] = '\\%(\\<\\|\\>\\)'
      elseif ESCAPES[escaped] then
        out[#out + 1] = ESCAPES[escaped]
      elseif escaped:match('%p') then
        out[#out + 1] = literal(escaped)
      elseif escaped == '' then
        wrong('`pattern` is no expression that can be looked for: it ends in a backslash')
      else
        no('\\' .. escaped)
      end
    elseif letter == '[' then
      out[#out + 1] = class()
    elseif letter == '(' then
      local name = expression:match('^%?P?<([%w_]+)>', at)
      if expression:sub(at, at + 1) == '?:' then
        at = at + 2
        out[#out + 1] = '\\%('
      elseif name then
        at = expression:find('>', at, true) + 1
        groups = groups + 1
        names[name] = groups
        out[#out + 1] = '\\('
      elseif expression:sub(at, at) == '?' then
        no('(?')
      else
        groups = groups + 1
        out[#out + 1] = '\\('
      end
    elseif letter == '{' then
      local least, comma, most = expression:match('^(%d+)(,?)(%d*)}', at)
      if not least then wrong('`pattern` is no expression that can be looked for: `{` needs numbers') end
      at = expression:find('}', at, true) + 1
      out[#out + 1] = '\\{' .. (lazy() and '-' or '') .. least .. comma .. most .. '}'
    elseif letter == '*' then
      out[#out + 1] = lazy() and '\\{-}' or '\\*'
    elseif letter == '+' then
      out[#out + 1] = lazy() and '\\{-1,}' or '\\+'
    elseif letter == '?' then
      out[#out + 1] = lazy() and '\\{-0,1}' or '\\='
    elseif letter == '.' then
      out[#out + 1] = '\\.'
    elseif letter == ')' then
      out[#out + 1] = '\\)'
    elseif letter == '|' then
      out[#out + 1] = '\\|'
    elseif letter == '^' then
      out[#out + 1] = '\\_^'
    elseif letter == '$' then
      out[#out + 1] = '\\_$'
    else
      out[#out + 1] = literal(letter)
    end
  end
  if groups > 9 then no('more than nine groups') end
  return table.concat(out), names, asks
end

-- Returns a function that finds the first match in a line from a byte on: its start, its end and its groups.
local function matcher(words, expression, ignores_case)
  if words then
    if words == '' or words:find('[\r\n]') then wrong('`text` must be a part of one line') end
    if not ignores_case then
      return function(line_text, from)
        local first, last = line_text:find(words, from + 1, true)
        if first then return first - 1, last, {} end
      end
    end
  elseif expression == '' then
    wrong('`pattern` is empty')
  end
  local body, names, asks
  if words then
    body, names = words:gsub('\\', '\\\\'), {}
  else
    body, names, asks = vim_pattern(expression)
  end
  local pattern = '\\%#=2' .. (ignores_case and '\\c' or '\\C') .. '\\V' .. body
  local ok, why = pcall(fn.match, '', pattern)
  if not ok then wrong('`pattern` is no expression that can be looked for: ' .. tostring(why)) end
  return function(line_text, from)
    if asks and line_text:find('[\128-\255]') then
      refuse(
        'unsupported',
        'Neovim tells letters of other scripts apart in another way than `pattern` asks; use `text`'
      )
    end
    local found = fn.matchstrpos(line_text, pattern, from, 1)
    if found[2] < 0 then return nil end
    return found[2], found[3], expression and fn.matchlist(line_text, pattern, from, 1) or {}, names
  end
end

-- Finds all in a text, from left to right, where they do not overlap. `found` says whether to go on.
local function each_match(whole, lines, find, found)
  for i, bounds in ipairs(lines) do
    local words, from = whole:sub(bounds[1] + 1, bounds[2]), 0
    while from <= #words do
      local first, last, groups, names = find(words, from)
      if not first then break end
      if not found(i - 1, words, first, last, groups, names) then return false end
      from = last > first and last or last + 1
    end
  end
  return true
end

function verbs.find_in_file(args)
  local path, words, ignores_case = args.text('path'), args.text('text'), args.flag('ignore_case')
  local limit = args.number('limit', 1, MOST_MATCHES) or USUAL_MATCHES
  args.done()
  local find = matcher(words, nil, ignores_case)
  local record = buffers.look(path)
  if not record then wrong(('%s is no text'):format(quoted(path))) end
  local matches, is_complete = {}, true
  each_match(record.text, places_of(record), find, function(row, line_text, first, last)
    if #matches >= limit then
      is_complete = false
      return false
    end
    local start = { line = row, character = place.to_units(line_text, first) }
    local ends = { line = row, character = place.to_units(line_text, last) }
    matches[#matches + 1] = { range = { start = start, ['end'] = ends }, line_text = line_text }
    return true
  end)
  return {
    path = record.path,
    version = record.version,
    digest = digest_of(record),
    matches = matches,
    is_complete = is_complete,
  }
end

-- A pattern for paths, as a function. `*` and `?` are within a name, `**` is any folders; without a slash it is about
-- the name.
local function glob_of(pattern)
  if not pattern then
    return function() return true end
  end
  if pattern == '' or #pattern > 1024 then wrong('`glob` must have 1 to 1024 bytes') end
  if pattern:sub(1, 1) == '/' or ('/' .. pattern .. '/'):find('/../', 1, true) then
    wrong('`glob` is about names beneath `path`; it cannot lead out of it')
  end
  local function expanded(from)
    local before, inner, after = from:match('^(.-){([^{}]*)}(.*)$')
    if not before then return { from } end
    local all = {}
    for _, choice in ipairs(vim.split(inner, ',', { plain = true })) do
      vim.list_extend(all, expanded(before .. choice .. after))
    end
    if #all > 64 then wrong('`glob` stands for more than 64 patterns') end
    return all
  end
  local function name_pattern(part)
    local lua =
      part:gsub('[%^%$%(%)%%%.%+%-]', '%%%0'):gsub('%*+', '.*'):gsub('%?', '[%%z\1-\127\194-\244][\128-\191]*')
    lua = lua:gsub('%[!', '[^'):gsub('(%[[^%]]*)%%(%-)', '%1%2')
    return '^' .. lua .. '$'
  end
  local function fits(parts, i, names, j)
    if i > #parts then return j > #names end
    if parts[i] == '**' then
      for k = j, #names + 1 do
        if fits(parts, i + 1, names, k) then return true end
      end
      return false
    end
    return names[j] ~= nil and names[j]:match(parts[i]) ~= nil and fits(parts, i + 1, names, j + 1)
  end
  local alternatives, is_name = {}, true
  for _, alternative in ipairs(expanded(pattern)) do
    local parts = {}
    for _, part in ipairs(vim.split(alternative, '/', { plain = true })) do
      if part ~= '' and part ~= '.' then parts[#parts + 1] = part == '**' and '**' or name_pattern(part) end
    end
    is_name = is_name and #parts == 1
    alternatives[#alternatives + 1] = parts
  end
  for _, parts in ipairs(alternatives) do
    for _, part in ipairs(parts) do
      if part ~= '**' and not pcall(string.match, '', part) then wrong('`glob` has a `[` that is not closed') end
    end
  end
  return function(path)
    local names = is_name and { path:match('[^/]*$') } or vim.split(path, '/', { plain = true })
    for _, parts in ipairs(alternatives) do
      if fits(parts, 1, names, 1) then return true end
    end
    return false
  end
end

-- Files beneath a folder, relative to it, without what is hidden and what git ignores, unless `also` wants these. Git
-- is asked in a way that runs nothing of the repository's: neither a monitor nor a hook. Returns whether that is all.
local function files_beneath(folder, also)
  local found, is_complete = {}, true
  local function add(path)
    if not also.hidden and ('/' .. path):find('/.', 1, true) then return end
    if #found >= MAX_WALKED then
      is_complete = false
    else
      found[#found + 1] = path
    end
  end
  local is_repository = #fn.finddir('.git', fn.fnameescape(folder) .. ';') > 0
    or #fn.findfile('.git', fn.fnameescape(folder) .. ';') > 0
  if is_repository and not also.ignored and fn.executable('git') == 1 then
    local command = {
      '-c',
      'core.fsmonitor=false',
      '-c',
      'core.hooksPath=/dev/null',
      'ls-files',
      '-z',
      '--cached',
      '--others',
      '--exclude-standard',
    }
    local output, code = commands.output('git', command, folder)
    if code == 0 then
      local seen = {}
      for path in output:gmatch('[^%z]+') do
        if not seen[path] then add(path) end
        seen[path] = true
      end
      return found, is_complete
    end
  end
  local folders, at = { '' }, 1
  while folders[at] and is_complete do
    local scan = uv.fs_scandir(folder .. '/' .. folders[at])
    while scan do
      local name, kind = uv.fs_scandir_next(scan)
      if not name then break end
      local path = folders[at] == '' and name or folders[at] .. '/' .. name
      -- Links are not followed.
      local is_wanted = name ~= '.git' and (also.hidden or name:sub(1, 1) ~= '.')
      if kind == 'directory' and is_wanted then
        folders[#folders + 1] = path
      elseif kind == 'file' then
        add(path)
      end
    end
    at = at + 1
    if at % 64 == 0 then commands.pause() end
  end
  return found, is_complete
end

local function replaced(template, groups, names)
  return (
    template
      :gsub('%$(%b{})', function(name) return '$\1' .. name:sub(2, -2) .. '\2' end)
      :gsub('%$%$', '\3')
      :gsub('%$\1([^\2]*)\2', function(name) return groups[(tonumber(name) or names[name] or 99) + 1] or '' end)
      :gsub('%$([%w_]+)', function(name) return groups[(tonumber(name) or names[name] or 99) + 1] or '' end)
      :gsub('\3', '$')
  )
end

local function told_preview(plans, files, key)
  local diff = {}
  for _, plan in ipairs(plans) do
    diff[#diff + 1] = text.unified(plan.record.path, plan.record.text, plan.text)
  end
  for i, plan in ipairs(plans) do
    files[i] = { path = plan.record.path, version = plan.record.version, [key] = #plan.edits }
  end
  return table.concat(diff)
end

local function too_many(why) refuse('too_large', why .. '; `path` and `glob` narrow it down. Nothing was changed') end

-- Goes through the texts of a file or of a folder, as they are in Neovim where they are open. `visit` says whether to
-- go on. Returns whether all of them were seen. The person's editor is not to stand still meanwhile.
local function each_text(path, glob, also, visit)
  path = roots.real(path)
  local stat = stat_of(path)
  if not stat and not buffers.at(path) then not_found(path) end
  local candidates, is_complete, listed = { path }, true, {}
  if stat and stat.type == 'directory' then
    local names
    names, is_complete = files_beneath(path, also)
    candidates = {}
    for _, name in ipairs(names) do
      local candidate = (path == '/' and '' or path) .. '/' .. name
      listed[candidate] = true
      if glob(name) then candidates[#candidates + 1] = candidate end
    end
    -- Unsaved text whose file is not there is met by no walk.
    for _, record in ipairs(buffers.all()) do
      local name = record.path:sub(#path + 2)
      if is_beneath(record.path, path) and not listed[record.path] and not stat_of(record.path) and glob(name) then
        candidates[#candidates + 1] = record.path
      end
    end
  end
  local since = uv.hrtime()
  for _, candidate in ipairs(candidates) do
    local record = buffers.at(candidate)
    if record then
      buffers.follow(record)
      record = buffers.at(candidate)
    end
    local ok, whole = true, record and record.text
    if not record then
      ok, whole = pcall(read_file, candidate)
    end
    if ok and text.is_text(whole) then
      if not visit(candidate, whole) then return false end
    elseif not ok then
      is_complete = is_complete and not stat_of(candidate)
    end
    if uv.hrtime() - since > 10e6 then
      commands.pause()
      since = uv.hrtime()
    end
  end
  return is_complete
end

local function is_part_of_a_word(letter) return letter:find('[%w_\128-\255]') ~= nil end

function verbs.find_in_project(args)
  local words, ignores_case, is_word = args.text('text'), args.flag('ignore_case'), args.flag('word')
  local path, glob = args.text('path'), glob_of(args.maybe_text('glob'))
  local also = { hidden = args.flag('hidden'), ignored = args.flag('ignored') }
  local limit = args.number('limit', 1, MOST_MATCHES) or USUAL_MATCHES
  args.done()
  local find, matches, files, is_cut = matcher(words, nil, ignores_case), {}, 0, false
  local is_complete = each_text(path, glob, also, function(candidate, whole)
    if not ignores_case and not whole:find(words, 1, true) then return true end
    local before = #matches
    each_match(whole, place.lines(whole), find, function(row, line_text, first, last)
      local is_inner = is_part_of_a_word(line_text:sub(first, first))
        or is_part_of_a_word(line_text:sub(last + 1, last + 1))
      if is_word and is_inner then return true end
      is_cut = #matches >= limit
      if is_cut then return false end
      matches[#matches + 1] = {
        path = candidate,
        line_text = line_text,
        range = {
          start = { line = row, character = place.to_units(line_text, first) },
          ['end'] = { line = row, character = place.to_units(line_text, last) },
        },
      }
      return true
    end)
    if #matches > before then files = files + 1 end
    return not is_cut
  end)
  return { matches = matches, files = files, is_complete = is_complete and not is_cut }
end

function verbs.replace_text(args)
  local words, expression, new_text = args.maybe_text('text'), args.maybe_text('pattern'), args.text('new_text')
  local path, glob, ignores_case = args.text('path'), glob_of(args.maybe_text('glob')), args.flag('ignore_case')
  local is_preview, limit = args.flag('preview'), args.number('limit', 1, MOST_MATCHES) or USUAL_MATCHES
  args.done()
  if words and expression then wrong('give `text` or `pattern`, not both') end
  if not words and not expression then wrong('`text` is missing: a string; or `pattern`, an expression') end
  local find, hits = matcher(words, expression, ignores_case), {}
  -- Only files that hold it become buffers.
  local is_complete = each_text(path, glob, {}, function(candidate, whole)
    if words and not ignores_case and not whole:find(words, 1, true) then return true end
    local is_hit = not each_match(whole, place.lines(whole), find, function() return false end)
    if is_hit then hits[#hits + 1] = candidate end
    return true
  end)
  if #hits > MAX_FILES then
    too_many(('it stands in %d files; at most %d can be changed at once'):format(#hits, MAX_FILES))
  end
  local plans, places = {}, 0
  for _, hit in ipairs(hits) do
    local record, edits = buffers.open(hit), {}
    local lines = places_of(record)
    each_match(record.text, lines, find, function(row, line_text, first, last, groups, names)
      places = places + 1
      if places > limit then too_many(('it stands in more than %d places, and `limit` is that'):format(limit)) end
      local new = words and new_text or replaced(new_text, groups, names)
      if new ~= line_text:sub(first + 1, last) then
        edits[#edits + 1] = { first = lines[row + 1][1] + first, last = lines[row + 1][1] + last, new_text = new }
      end
      return true
    end)
    if #edits > 0 then plans[#plans + 1] = buffers.planned(record, edits) end
  end
  local files, replacements = {}, 0
  for _, plan in ipairs(plans) do
    replacements = replacements + #plan.edits
  end
  local answer = { files = files, replacements = replacements, is_preview = is_preview, is_complete = is_complete }
  if is_preview then
    answer.diff = told_preview(plans, files, 'replacements')
    return answer
  end
  buffers.make(plans, 'replace')
  for i, plan in ipairs(plans) do
    files[i] = { path = plan.record.path, version = plan.record.version, replacements = #plan.edits }
  end
  return answer
end

-- === Verbs: what language servers know ===

-- How long a server has for one answer, and how long one may take to attach to a file that was just opened.
local ANSWER_MS, ATTACH_MS = 10000, 5000

lsp.busy, lsp.pushed = {}, {}

-- Listens along to what servers say unasked: which text their errors are of, and whether they are still at work.
function lsp.listen()
  local function along(method, hear)
    local usual = vim.lsp.handlers[method]
    vim.lsp.handlers[method] = function(err, result, context, ...)
      pcall(hear, result, context)
      if usual then return usual(err, result, context, ...) end
    end
  end
  along('textDocument/publishDiagnostics', function(result, context)
    local path = vim.uri_to_fname(result.uri)
    local record = buffers.at(uv.fs_realpath(path) or path)
    if not record then return end
    lsp.pushed[context.client_id] = lsp.pushed[context.client_id] or {}
    -- Servers that name no version mean the text that they had; it is ours if it has rested since.
    local is_current = result.version == nil or result.version == NIL or result.version >= (record.lines_tick or 0)
    local known = lsp.pushed[context.client_id]
    known[record.buffer] = { version = is_current and record.version or (known[record.buffer] or {}).version }
    voice.errors(record)
  end)
  along('$/progress', function(result, context)
    local tokens = lsp.busy[context.client_id] or {}
    lsp.busy[context.client_id] = tokens
    local value = result.value or {}
    if value.kind == 'begin' then
      tokens[result.token] = value.title or 'something'
    elseif value.kind == 'end' then
      tokens[result.token] = nil
    end
  end)
end

function voice.errors(record)
  vim.schedule(function()
    if not api.nvim_buf_is_loaded(record.buffer) then return end
    local counts = { 0, 0, 0, 0 }
    for _, item in ipairs(vim.diagnostic.get(record.buffer)) do
      counts[item.severity] = counts[item.severity] + 1
    end
    voice.tell(
      'errors_detected',
      { path = record.path, version = record.version, errors = counts[1], warnings = counts[2] }
    )
  end)
end

function lsp.clients(buffer)
  if vim.lsp.get_clients then return vim.lsp.get_clients({ bufnr = buffer }) end
  if fn.has('nvim-0.8') == 1 then return vim.lsp.get_active_clients({ bufnr = buffer }) end
  local all = {}
  for _, client in pairs(vim.lsp.buf_get_clients(buffer)) do
    all[#all + 1] = client
  end
  return all
end

function lsp.offers(client, ability, buffer)
  local capability = (client.server_capabilities or {})[ability.capability]
  if capability ~= nil and capability ~= false and capability ~= NIL then return true end
  -- What a server has said later only. Before 0.10 Neovim takes whatever it does not know for offered.
  if fn.has('nvim-0.11') == 1 then return client:supports_method(ability.method, buffer) end
  return fn.has('nvim-0.10') == 1 and client.supports_method(ability.method, { bufnr = buffer })
end

function lsp.option(client, capability, name)
  local options = (client.server_capabilities or {})[capability]
  return type(options) == 'table' and options[name] or nil
end

function lsp.busy_with(client)
  local _, title = next(lsp.busy[client.id] or {})
  return title
end

-- Waits for something to become so; returns what it is, or nil when the time is over.
local function until_so(within_ms, look)
  local ends = uv.now() + within_ms
  while true do
    local found = look()
    if found or uv.now() >= ends then return found end
    commands.rest(20)
  end
end

-- The servers of a text that are attached by now; of one that was just opened, they are waited for.
function lsp.attached(record)
  local left = ATTACH_MS - (uv.now() - record.born)
  local clients = until_so(math.max(left, 0), function()
    local attached = lsp.clients(record.buffer)
    return #attached > 0 and attached or nil
  end)
  if clients then return clients end
  refuse(
    'unsupported',
    ('no language server is attached to %s in Neovim; set one up for %s (:help lsp), then open it again'):format(
      quoted(record.path),
      tostring(vim.bo[record.buffer].filetype ~= '' and vim.bo[record.buffer].filetype or 'its language')
    )
  )
end

function lsp.client(record, ability)
  local clients = lsp.attached(record)
  for _, client in ipairs(clients) do
    if lsp.offers(client, ability, record.buffer) then return client end
  end
  refuse('unsupported', ('the language server %s cannot %s'):format(clients[1].name, ability.what))
end

-- Content modified, server cancelled: it wants to be asked again.
local AGAIN = { [-32801] = true, [-32802] = true }

-- Asks a server. Neovim sends it the text as it is first.
function lsp.ask(client, record, method, params, within_ms, on_late)
  local ends = uv.now() + (within_ms or ANSWER_MS)
  while true do
    local err, result = commands.await(function(resume)
      local is_method = fn.has('nvim-0.11') == 1
      local function call(name, ...)
        if is_method then return client[name](client, ...) end
        return client[name](...)
      end
      local sent, id = call('request', method, params, function(err, result) resume(err, result) end, record.buffer)
      if not sent then resume({ message = 'it has ended' }) end
      return function() pcall(call, 'cancel_request', id) end
    end, math.max(ends - uv.now(), 1))
    if err == commands.LATE then
      if on_late then return on_late end
      refuse('timed_out', ('the language server %s has not answered in time; try again'):format(client.name))
    end
    if err and not (AGAIN[err.code] and uv.now() < ends) then
      if err.code == -32601 then
        refuse('unsupported', ('the language server %s cannot do %s'):format(client.name, method))
      end
      refuse(
        'failed',
        ('the language server %s says: %s'):format(client.name, tostring(err.message or err):sub(1, 500))
      )
    end
    if not err then return result ~= NIL and result or nil end
    commands.rest(50)
  end
end

local function document(record) return { uri = vim.uri_from_fname(record.path) } end

local function encoding_of(client) return client.offset_encoding or 'utf-16' end

-- A place of ours as a server counts; refused if the text has none such.
function lsp.place(client, record, position)
  local offset, why = place.offset(record.text, places_of(record), position)
  if not offset then wrong(why) end
  return place.at(record.text, places_of(record), offset, encoding_of(client))
end

-- A server's range as we count, in a text. Without the text it stays as it is.
function lsp.told_range(client, range, whole, lines)
  if not whole or encoding_of(client) == 'utf-16' then
    return {
      start = { line = range.start.line, character = range.start.character },
      ['end'] = { line = range['end'].line, character = range['end'].character },
    }
  end
  local function told(position)
    local bounds = lines[position.line + 1]
    if not bounds then return { line = position.line, character = position.character } end
    local words = whole:sub(bounds[1] + 1, bounds[2])
    local byte = place.to_byte(words, position.character, encoding_of(client)) or 0
    return { line = position.line, character = place.to_units(words, byte) }
  end
  return { start = told(range.start), ['end'] = told(range['end']) }
end

local SEVERITIES = { 'error', 'warning', 'information', 'hint' }
local DIAGNOSTIC = { capability = 'diagnosticProvider', method = 'textDocument/diagnostic', what = 'tell errors' }

-- Asks a server for the errors of a text as it is. Neovim asks for them itself from 0.10 on; any version can be made
-- to.
function lsp.pull(client, record, ends)
  local items, version, answered = {}, nil, nil
  repeat
    version = buffers.now(record).version
    local params =
      { textDocument = document(record), identifier = lsp.option(client, DIAGNOSTIC.capability, 'identifier') }
    local result = lsp.ask(client, record, DIAGNOSTIC.method, params, math.max(ends - uv.now(), 100), commands.LATE)
    -- What is known by then is told, with what it is of.
    if result == commands.LATE then break end
    items, answered = (result or {}).items or {}, version
    local is_done = buffers.now(record).version == version and not lsp.busy_with(client)
    if not is_done and uv.now() < ends then commands.rest(50) end
  until is_done or uv.now() >= ends
  return items, answered
end

-- What a server has said by itself, as it said it, and the version that it is of.
function lsp.told_by(client, record, ends)
  local function current()
    local known = (lsp.pushed[client.id] or {})[record.buffer]
    local is_current = known and known.version == buffers.now(record).version and not lsp.busy_with(client)
    return is_current or lsp.offers(client, DIAGNOSTIC, record.buffer)
  end
  until_so(math.max(ends - uv.now(), 0), current)
  local known = (lsp.pushed[client.id] or {})[record.buffer] or {}
  local items = {}
  local namespace = vim.lsp.diagnostic.get_namespace(client.id)
  for _, item in ipairs(vim.diagnostic.get(record.buffer, { namespace = namespace })) do
    local function position(row, column)
      local words = record.lines[row + 1] or ''
      return { line = row, character = place.to_units(words, column, encoding_of(client)) }
    end
    local more = (item.user_data or {}).lsp or {}
    items[#items + 1] = vim.tbl_extend(
      'keep',
      {
        message = item.message,
        severity = item.severity,
        source = item.source,
        code = item.code or more.code,
        data = more.data,
        range = {
          start = position(item.lnum, item.col),
          ['end'] = position(item.end_lnum or item.lnum, item.end_col or item.col),
        },
      },
      {}
    )
  end
  return items, known.version
end

-- All errors of a text: what every server says, and the oldest version that one of them speaks of.
function lsp.errors(record, clients, ends)
  local told, analyzed, is_complete, servers = {}, nil, true, {}
  for _, client in ipairs(clients) do
    local items, version
    -- Some say only after a while that they want to be asked.
    if not lsp.offers(client, DIAGNOSTIC, record.buffer) then items, version = lsp.told_by(client, record, ends) end
    if lsp.offers(client, DIAGNOSTIC, record.buffer) then items, version = lsp.pull(client, record, ends) end
    is_complete = is_complete and version == record.version and not lsp.busy_with(client)
    analyzed = version and math.min(analyzed or version, version) or analyzed
    servers[#servers + 1] =
      { name = client.name, root = client.config.root_dir or NIL, busy_with = lsp.busy_with(client) or NIL }
    for _, item in ipairs(items) do
      told[#told + 1] = {
        path = record.path,
        range = lsp.told_range(client, item.range, record.text, places_of(record)),
        severity = SEVERITIES[item.severity or 1] or 'error',
        message = item.message,
        source = item.source or NIL,
        code = item.code or NIL,
        raw = item,
      }
    end
  end
  return told, analyzed, is_complete, servers
end

local function without_raw(told)
  for _, item in ipairs(told) do
    item.raw = nil
  end
  return told
end

-- Errors of all files in one answer. Of more the answer says that it is not complete.
local MAX_ERRORS = 5000

function verbs.get_errors(args)
  local path, wait = args.maybe_text('path'), args.number('wait_ms', 0, 60000) or 10000
  args.done()
  local ends = uv.now() + wait
  if path then
    local record = buffers.open(path)
    local told, analyzed, is_complete, servers = lsp.errors(record, lsp.attached(record), ends)
    return {
      diagnostics = without_raw(told),
      version = record.version,
      analyzed_version = analyzed or NIL,
      is_complete = is_complete,
      server = servers[1],
    }
  end
  local all, is_complete, names = {}, true, {}
  for _, record in ipairs(buffers.all()) do
    local clients = lsp.clients(record.buffer)
    if #clients > 0 and #all <= MAX_ERRORS then
      local told, _, is_whole = lsp.errors(record, clients, ends)
      vim.list_extend(all, without_raw(told))
      is_complete = is_complete and is_whole
      for _, client in ipairs(clients) do
        names[client.name] = true
      end
    end
  end
  is_complete = is_complete and next(names) ~= nil and #all <= MAX_ERRORS
  return {
    diagnostics = vim.list_slice(all, 1, MAX_ERRORS),
    version = NIL,
    analyzed_version = NIL,
    is_complete = is_complete,
    server = vim.tbl_keys(names),
  }
end

local COMPLETION_KINDS = {
  'text',
  'method',
  'function',
  'constructor',
  'field',
  'variable',
  'class',
  'interface',
  'module',
  'property',
  'unit',
  'value',
  'enum',
  'keyword',
  'snippet',
  'color',
  'file',
  'reference',
  'folder',
  'enum_member',
  'constant',
  'struct',
  'event',
  'operator',
  'type_parameter',
}
local COMPLETION = { capability = 'completionProvider', method = 'textDocument/completion', what = 'complete code' }

-- How well an item fits what was typed; nil if it does not.
local function fitness(word, typed)
  if word:sub(1, #typed) == typed then return 0 end
  if word:find(typed, 1, true) then return 1 end
  local at = 1
  for letter in typed:gmatch('[%z\1-\127\194-\244][\128-\191]*') do
    at = word:find(letter, at, true)
    if not at then return nil end
    at = at + #letter
  end
  return 2
end

local function text_or_value(value)
  return type(value) == 'table' and value.value or type(value) == 'string' and value or nil
end

function verbs.get_completions(args)
  local path = args.text('path')
  local position = args.position('position') or wrong('`position` is missing: {line, character}')
  local limit = args.number('limit', 1, 500) or 50
  args.done()
  local record = buffers.open(path)
  local offset, why = place.offset(record.text, places_of(record), position)
  if not offset then wrong(why) end
  local client = lsp.client(record, COMPLETION)
  local version = record.version
  local params =
    { textDocument = document(record), position = lsp.place(client, record, position), context = { triggerKind = 1 } }
  local answer = lsp.ask(client, record, COMPLETION.method, params) or {}
  local items = answer.items or answer
  -- The word that stands before the place. Servers leave it to the editor to choose by it.
  local typed = fn.tolower(record.text:sub(1, offset):match('[%w_$\128-\255]*$'))
  local fitting = {}
  for _, item in ipairs(items) do
    local rank = type(item.label) == 'string'
      and fitness(fn.tolower(text_or_value(item.filterText) or item.label), typed)
    if rank then
      fitting[#fitting + 1] = { rank = rank, sort = text_or_value(item.sortText) or item.label, item = item }
    end
  end
  table.sort(fitting, function(a, b)
    if a.rank ~= b.rank then return a.rank < b.rank end
    return a.sort < b.sort
  end)
  local told = {}
  for i = 1, math.min(limit, #fitting) do
    local item = fitting[i].item
    local edit = type(item.textEdit) == 'table' and item.textEdit.newText
    local details = type(item.labelDetails) == 'table' and text_or_value(item.labelDetails.detail)
    local words = text_or_value(item.documentation)
    told[i] = {
      label = item.label,
      kind = COMPLETION_KINDS[item.kind] or NIL,
      detail = text_or_value(item.detail) or details or NIL,
      insert_text = edit or text_or_value(item.insertText) or item.label,
      documentation = words and words ~= '' and fn.strcharpart(words, 0, 1000) or nil,
    }
  end
  local is_whole = answer.isIncomplete ~= true and not lsp.busy_with(client) and #fitting <= limit
  return { items = told, is_complete = is_whole, version = version }
end

-- === Changes that servers propose ===

local MAX_PROPOSED = 20000

-- Returns the plans that a WorkspaceEdit means: all of it or nothing. `before` is the version that each text had when
-- the server was asked; a text that it has read from the disk itself must be clean.
function lsp.plans(client, edit, before)
  local wanted, order = {}, {}
  local function want(uri, edits)
    if type(uri) ~= 'string' or uri:sub(1, 5) ~= 'file:' then
      refuse('failed', 'the language server wants to change something that is no file; nothing was changed')
    end
    if type(edits) ~= 'table' then
      refuse('failed', 'the language server has named a file and no edits; nothing was changed')
    end
    if wanted[uri] then
      refuse('failed', 'the language server wants to change a file twice in a row; nothing was changed')
    end
    wanted[uri], order[#order + 1] = edits, uri
  end
  -- LSP 3.17, WorkspaceEdit: where both are there, the document changes are meant.
  if type(edit.documentChanges) == 'table' then
    for _, step in ipairs(edit.documentChanges) do
      if step.kind then
        refuse(
          'unsupported',
          (
            'the change would also %s a file, which is not done along with edits; do that with create_file, '
            .. 'rename_file or delete_file'
          ):format(step.kind)
        )
      end
      want(step.textDocument.uri, step.edits)
    end
  else
    for uri, edits in pairs(type(edit.changes) == 'table' and edit.changes or {}) do
      want(uri, edits)
    end
  end
  table.sort(order)
  local plans, count = {}, 0
  for _, uri in ipairs(order) do
    count = count + #wanted[uri]
  end
  if #order > MAX_FILES or count > MAX_PROPOSED then
    refuse(
      'too_large',
      ('the change would make %d edits in %d files; at most %d in %d are made'):format(
        count,
        #order,
        MAX_PROPOSED,
        MAX_FILES
      )
    )
  end
  for _, uri in ipairs(order) do
    local path = vim.uri_to_fname(uri)
    local ok, record = pcall(buffers.open, path)
    if not ok then
      refuse(
        record.code or 'failed',
        ('the change would also touch %s: %s; nothing was changed'):format(
          quoted(path),
          record.message or tostring(record)
        )
      )
    end
    local known = before[record.path]
    if known and known ~= record.version or not known and is_dirty(record) then stale(record.path, record.version) end
    local lines, found = places_of(record), {}
    local function offset_of(position)
      -- Beyond the last line is the end, as servers say "all of it".
      if position.line >= #lines then return #record.text end
      return place.offset(record.text, lines, position, encoding_of(client))
    end
    for i, one in ipairs(wanted[uri]) do
      if one.insertTextFormat == 2 then
        refuse('failed', 'the language server wants to insert a template; nothing was changed')
      end
      local first, last = offset_of(one.range.start), offset_of(one.range['end'])
      if not first or not last or first > last then
        refuse('failed', 'the language server has named a place that is not in the text; nothing was changed')
      end
      found[i] = { first = first, last = last, new_text = one.newText }
    end
    if #found > 0 then plans[#plans + 1] = buffers.planned(record, found) end
  end
  return plans
end

-- The versions of all texts that a server has from us.
local function versions_now()
  local before = {}
  for _, record in ipairs(buffers.all()) do
    before[record.path] = record.version
  end
  return before
end

local function made(plans, is_preview, reason)
  local files = {}
  if is_preview then
    local diff = told_preview(plans, files, 'edits')
    return { files = files, diff = diff, is_preview = true }
  end
  buffers.make(plans, reason)
  return { files = vim.tbl_map(told_change, plans), is_preview = false }
end

local function fresh(path, version)
  local record = buffers.open(path)
  if version and version ~= record.version then stale(record.path, record.version) end
  return record
end

function verbs.format_code(args)
  local path, version, range = args.text('path'), args.version(), args.range('range')
  local tab_size, insert_spaces = args.number('tab_size', 1, 16) or 4, args.take('insert_spaces') ~= false
  args.done()
  local record = fresh(path, version)
  local ability = range
      and {
        capability = 'documentRangeFormattingProvider',
        method = 'textDocument/rangeFormatting',
        what = 'format a part of a file; leave out `range`',
      }
    or { capability = 'documentFormattingProvider', method = 'textDocument/formatting', what = 'format code' }
  local client = lsp.client(record, ability)
  local params = { textDocument = document(record), options = { tabSize = tab_size, insertSpaces = insert_spaces } }
  if range then
    params.range = { start = lsp.place(client, record, range.start), ['end'] = lsp.place(client, record, range['end']) }
  end
  local before = versions_now()
  local edits = lsp.ask(client, record, ability.method, params)
  local plans = lsp.plans(client, { changes = { [document(record).uri] = edits or {} } }, before)
  if #plans == 0 then return { path = record.path, version = record.version, edits = 0, is_changed = false } end
  buffers.make(plans, 'format')
  return vim.tbl_extend('force', told_change(plans[1]), { is_changed = true })
end

function verbs.refactor_symbol(args)
  local path = args.text('path')
  local position = args.position('position') or wrong('`position` is missing: {line, character}')
  local new_name, version, is_preview = args.text('new_name'), args.version(), args.flag('preview')
  args.done()
  if not new_name:find('%S') or new_name:find('%c') or fn.strchars(new_name) > 200 then
    wrong('`new_name` must be a name of 1 to 200 letters')
  end
  local record = fresh(path, version)
  local client =
    lsp.client(record, { capability = 'renameProvider', method = 'textDocument/rename', what = 'rename symbols' })
  local params = { textDocument = document(record), position = lsp.place(client, record, position) }
  local nothing = 'there is nothing at `position` that could be renamed'
  if
    lsp.option(client, 'renameProvider', 'prepareProvider') == true
    and not lsp.ask(client, record, 'textDocument/prepareRename', params)
  then
    wrong(nothing)
  end
  -- Half of the uses would keep the old name.
  if not until_so(ANSWER_MS, function() return not lsp.busy_with(client) end) then
    refuse('timed_out', ('%s is still loading the project; try again in a moment'):format(client.name), 2000)
  end
  local before = versions_now()
  local edit = lsp.ask(client, record, 'textDocument/rename', vim.tbl_extend('force', params, { newName = new_name }))
  if not edit then wrong(nothing) end
  return made(lsp.plans(client, edit, before), is_preview, 'rename')
end

local MAX_FIXES = 200
local ACTION = { capability = 'codeActionProvider', method = 'textDocument/codeAction', what = 'offer quick fixes' }

function verbs.apply_quick_fix(args)
  local path = args.text('path')
  local range = args.range('range') or wrong('`range` is missing: {start, end}')
  local title, version, is_preview = args.maybe_text('title'), args.version(), args.flag('preview')
  args.done()
  local record = fresh(path, version)
  local client = lsp.client(record, ACTION)
  local named = { start = lsp.place(client, record, range.start), ['end'] = lsp.place(client, record, range['end']) }
  -- Some servers only have fixes for the errors that they are told back.
  local errors, near = lsp.errors(record, { client }, uv.now() + ANSWER_MS / 2), {}
  local function comes_before(a, b) return a.line < b.line or (a.line == b.line and a.character <= b.character) end
  for _, item in ipairs(errors) do
    if comes_before(item.range.start, range['end']) and comes_before(range.start, item.range['end']) then
      near[#near + 1] = item.raw
    end
  end
  local params = { textDocument = document(record), range = named, context = { diagnostics = near, triggerKind = 1 } }
  local before = versions_now()
  local offered, titles = {}, {}
  for _, action in ipairs(lsp.ask(client, record, ACTION.method, params) or {}) do
    if action.disabled == nil then offered[#offered + 1] = action end
  end
  if not title then
    local fixes = {}
    for i = 1, math.min(#offered, MAX_FIXES) do
      fixes[i] =
        { title = offered[i].title, kind = offered[i].kind or NIL, is_preferred = offered[i].isPreferred == true }
    end
    return { fixes = fixes, is_complete = #offered <= MAX_FIXES and not lsp.busy_with(client) }
  end
  local chosen
  for i, action in ipairs(offered) do
    if action.title == title then chosen = chosen or action end
    if i <= 10 then titles[i] = quoted(action.title) end
  end
  if not chosen then
    refuse(
      'not_found',
      ('no quick fix %s is offered there by now; %s'):format(
        quoted(title),
        #titles == 0 and 'nothing is offered' or table.concat(titles, ', ')
      )
    )
  end
  local edit = chosen.edit
  -- A Command's `command` is a string, a CodeAction's is a table.
  if not edit and type(chosen.command) ~= 'string' and lsp.option(client, ACTION.capability, 'resolveProvider') then
    edit = (lsp.ask(client, record, 'codeAction/resolve', chosen) or {}).edit
  end
  if not edit then
    refuse(
      'unsupported',
      ('the quick fix %s runs a command of the language server %s; only fixes that are edits can be applied'):format(
        quoted(title),
        client.name
      )
    )
  end
  return made(lsp.plans(client, edit, before), is_preview, 'quick_fix')
end

local LOCATIONS = {
  definition = { capability = 'definitionProvider', method = 'textDocument/definition', what = 'find definitions' },
  declaration = { capability = 'declarationProvider', method = 'textDocument/declaration', what = 'find declarations' },
  type_definition = {
    capability = 'typeDefinitionProvider',
    method = 'textDocument/typeDefinition',
    what = 'find types',
  },
  implementation = {
    capability = 'implementationProvider',
    method = 'textDocument/implementation',
    what = 'find implementations',
  },
  references = { capability = 'referencesProvider', method = 'textDocument/references', what = 'find references' },
  symbols = { capability = 'documentSymbolProvider', method = 'textDocument/documentSymbol', what = 'list symbols' },
}
local SYMBOL_KINDS = {
  'file',
  'module',
  'namespace',
  'package',
  'class',
  'method',
  'property',
  'field',
  'constructor',
  'enum',
  'interface',
  'function',
  'variable',
  'constant',
  'string',
  'number',
  'boolean',
  'array',
  'object',
  'key',
  'null',
  'enum_member',
  'struct',
  'event',
  'operator',
  'type_parameter',
}
-- Places in one answer. Of more the answer says that it is not complete.
local MAX_PLACES = 1000

function verbs.goto_definition(args)
  local path, position, kind = args.text('path'), args.position('position'), args.maybe_text('kind') or 'definition'
  args.done()
  local ability = LOCATIONS[kind]
    or wrong(
      ('`kind` is definition, declaration, type_definition, implementation, references or symbols, not %s'):format(
        quoted(kind)
      )
    )
  if not position and kind ~= 'symbols' then wrong('`position` is missing: {line, character}') end
  local record = buffers.open(path)
  local client = lsp.client(record, ability)
  local params = { textDocument = document(record) }
  if position then
    local there = lsp.place(client, record, position)
    if kind ~= 'symbols' then params.position = there end
  end
  if kind == 'references' then params.context = { includeDeclaration = true } end
  local answer = lsp.ask(client, record, ability.method, params) or {}
  local found = {}
  -- A Location, a LocationLink, a SymbolInformation or a DocumentSymbol.
  local function collect(item, container)
    local there = type(item.location) == 'table' and item.location or item
    local uri, range = there.uri or item.targetUri, there.range
    if item.targetUri then range = item.targetSelectionRange end
    if item.selectionRange and item.name then range = item.range end
    if #found <= MAX_PLACES and type(range) == 'table' then
      found[#found + 1] = {
        path = uri and vim.uri_to_fname(uri) or record.path,
        range = range,
        symbol = item.name and item,
        container = container or item.containerName,
      }
    end
    for _, child in ipairs(type(item.children) == 'table' and item.children or {}) do
      collect(child, item.name)
    end
  end
  if #answer > 0 then
    for _, item in ipairs(answer) do
      collect(item)
    end
  elseif answer.uri or answer.targetUri then
    collect(answer)
  end
  local is_complete, texts, locations = #found <= MAX_PLACES and not lsp.busy_with(client), {}, {}
  for i = 1, math.min(#found, MAX_PLACES) do
    local one = found[i]
    -- Of what lies outside it is told where it is, and nothing of what stands there.
    if texts[one.path] == nil then
      local ok, real = pcall(roots.real, one.path)
      local known = ok and buffers.at(real)
      local read, bytes = true, known and known.text
      if ok and not known then
        read, bytes = pcall(read_file, real)
      end
      local whole = ok and ((read and text.is_text(bytes)) and bytes or '')
      texts[one.path] = whole and { whole = whole, lines = place.lines(whole), path = real } or false
    end
    local there = texts[one.path]
    local told = {
      path = there and there.path or one.path,
      is_granted = there ~= false,
      range = lsp.told_range(client, one.range, there and there.whole or nil, there and there.lines),
    }
    local bounds = there and there.lines[told.range.start.line + 1]
    if bounds then told.line_text = fn.strcharpart(there.whole:sub(bounds[1] + 1, bounds[2]), 0, 300) end
    if one.symbol then
      told.name, told.kind = one.symbol.name, SYMBOL_KINDS[one.symbol.kind] or 'symbol'
      told.container = (one.container and one.container ~= '') and one.container or NIL
    end
    locations[i] = told
  end
  return { locations = locations, is_complete = is_complete }
end

local MAX_LENSES, MAX_RESOLVED = 500, 100

function verbs.get_code_lens(args)
  local path = args.text('path')
  args.done()
  local record = buffers.open(path)
  local client =
    lsp.client(record, { capability = 'codeLensProvider', method = 'textDocument/codeLens', what = 'show code lenses' })
  local version, ends = record.version, uv.now() + ANSWER_MS
  local lenses = lsp.ask(client, record, 'textDocument/codeLens', { textDocument = document(record) }) or {}
  local told, resolved, is_complete = {}, 0, #lenses <= MAX_LENSES and not lsp.busy_with(client)
  for i = 1, math.min(#lenses, MAX_LENSES) do
    local command = lenses[i].command
    if
      not command
      and lsp.option(client, 'codeLensProvider', 'resolveProvider')
      and resolved < MAX_RESOLVED
      and uv.now() < ends
    then
      resolved = resolved + 1
      command = (lsp.ask(client, record, 'codeLens/resolve', lenses[i]) or {}).command
    end
    is_complete = is_complete and command ~= nil
    command = command or {}
    told[i] = {
      range = lsp.told_range(client, lenses[i].range, record.text, places_of(record)),
      title = command.title or NIL,
      command = command.command or NIL,
    }
  end
  return { lenses = told, version = version, is_complete = is_complete }
end

-- === Commands ===

-- What runs now, by the daemon's number. The daemon sends no more than 64 at a time.
commands.running = {}
-- What `await` returns when the time is over.
commands.LATE = {}

-- Does a verb. It runs as a coroutine: what has to be waited for lets the person's editor go on.
function commands.run(order)
  local job = { id = order.id, session = order.session_id, ends = {} }
  commands.running[job.id] = job
  job.deadline = uv.new_timer()
  -- A little earlier than the daemon's, so that it is this answer that arrives.
  job.deadline:start(
    math.max((order.deadline_ms or 30000) - 250, 50),
    0,
    vim.schedule_wrap(
      function()
        commands.answer(
          job,
          false,
          { code = 'timed_out', message = order.action .. ' took too long in Neovim; look again what was done' }
        )
      end
    )
  )
  job.thread = coroutine.create(function()
    local verb = verbs[order.action]
    if not verb then refuse('unsupported', ('Neovim cannot %s'):format(tostring(order.action))) end
    return verb(args_of(order.args or {}))
  end)
  commands.step(job)
end

function commands.step(job, ...)
  if commands.running[job.id] ~= job then return end
  -- What happens while this runs is this session's doing; nobody else's code runs in between.
  commands.job, commands.session = job, job.session
  local ok, value = coroutine.resume(job.thread, ...)
  commands.job, commands.session = nil, nil
  if coroutine.status(job.thread) == 'dead' then return commands.answer(job, ok, value) end
  -- It waits for what `value` begins.
  local is_over = false
  local function resume(...)
    if is_over then return end
    is_over = true
    local given, count = { ... }, select('#', ...)
    vim.schedule(function()
      commands.end_waiting(job)
      commands.step(job, unpack(given, 1, count))
    end)
  end
  job.stop_waiting = value(resume)
end

function commands.end_waiting(job)
  local stop = job.stop_waiting
  job.stop_waiting = nil
  if stop then pcall(stop) end
end

-- Waits until `begin` calls what it is given, and returns what it is called with. `begin` returns what ends it; that is
-- called in any case.
function commands.await(begin, within_ms)
  return coroutine.yield(function(resume)
    local stop = begin(resume)
    if not within_ms then return stop end
    local timer = uv.new_timer()
    timer:start(within_ms, 0, function() resume(commands.LATE) end)
    return function()
      timer:close()
      if stop then stop() end
    end
  end)
end

function commands.rest(ms)
  commands.await(function(resume)
    local timer = uv.new_timer()
    timer:start(ms, 0, resume)
    return function() timer:close() end
  end)
end

-- Lets everything else have its turn.
function commands.pause()
  commands.await(function(resume) resume() end)
end

-- Runs a program to its end and returns what it printed. It dies with the command.
function commands.output(program, arguments, folder)
  return commands.await(function(resume)
    local pipe, chunks, handle, code = uv.new_pipe(false), {}, nil, nil
    local has_ended = false
    local function done()
      if has_ended and code then resume(table.concat(chunks), code) end
    end
    handle = uv.spawn(program, { args = arguments, cwd = folder, stdio = { nil, pipe, nil } }, function(exit_code)
      code = exit_code
      done()
    end)
    if not handle then
      resume('', -1)
    else
      pipe:read_start(function(_, chunk)
        if chunk then
          chunks[#chunks + 1] = chunk
        else
          has_ended = true
          done()
        end
      end)
    end
    return function()
      pipe:close()
      if handle then
        if not code then handle:kill('sigkill') end
        handle:close()
      end
    end
  end)
end

-- Sends the one result of a command, and ends what it waited for.
function commands.answer(job, is_ok, value)
  if commands.running[job.id] ~= job then return end
  commands.running[job.id] = nil
  commands.end_waiting(job)
  job.deadline:stop()
  job.deadline:close()
  if is_ok then return line.send({ type = 'result', id = job.id, status = 'ok', data = value }) end
  local failure = type(value) == 'table' and value.code and value
    or { code = 'failed', message = 'Neovim says: ' .. tostring(value):match('^[^\n]*') }
  line.send({
    type = 'result',
    id = job.id,
    status = 'error',
    error = {
      code = failure.code,
      message = failure.message,
      details = failure.retry_after_ms and { retry_after_ms = failure.retry_after_ms } or nil,
    },
  })
end

-- Ends a command without an answer.
function commands.cancel(id)
  local job = commands.running[id]
  if not job then return end
  commands.running[id] = nil
  commands.end_waiting(job)
  job.deadline:stop()
  job.deadline:close()
end

function commands.cancel_all()
  for id in pairs(commands.running) do
    commands.cancel(id)
  end
end

-- === WebSocket frames (RFC 6455) ===

-- Returns a frame as clients send it. Clients must mask, so that no proxy on the way takes what a page sends for a
-- request of its own (10.3). There is no proxy in a Unix socket, and a key of zeros is a valid one that leaves all
-- bytes as they are.
function frame.text(payload, opcode)
  local length, size = #payload, nil
  if length < 126 then
    size = string.char(128 + length)
  elseif length < 65536 then
    size = string.char(128 + 126, math.floor(length / 256), length % 256)
  else
    size = string.char(128 + 127)
    for i = 7, 0, -1 do
      size = size .. string.char(math.floor(length / 256 ^ i) % 256)
    end
  end
  return string.char(128 + (opcode or 1)) .. size .. '\0\0\0\0' .. payload
end

-- Returns a function that takes bytes as they come and calls `hear(opcode, payload)` for each message, put together
-- from its frames. It returns why the connection cannot go on, if so.
function frame.reader(hear)
  local chunks, have, need, whole, opcode = {}, 0, 2, '', nil
  local function take(bytes)
    chunks[#chunks + 1] = bytes
    have = have + #bytes
    while have >= need do
      if #chunks > 1 then chunks = { table.concat(chunks) } end
      local all = chunks[1]
      local first, second = all:byte(1, 2)
      local length, at = second % 128, 3
      if second >= 128 then return 'a frame of a server is not masked' end
      if length == 126 then
        at = 5
        if have < 4 then
          need = 4
          return
        end
        length = all:byte(3) * 256 + all:byte(4)
      elseif length == 127 then
        at = 11
        if have < 10 then
          need = 10
          return
        end
        length = 0
        for i = 3, 10 do
          length = length * 256 + all:byte(i)
        end
      end
      if length + #whole > MAX_MESSAGE then return 'a message of more than 16 MiB' end
      need = at - 1 + length
      if have < need then return end
      local payload = all:sub(at, need)
      chunks, have, need = { all:sub(need + 1) }, have - need, 2
      local kind, is_last = first % 16, first >= 128
      if kind >= 8 then
        hear(kind, payload)
      else
        if kind ~= 0 then opcode = kind end
        whole = whole .. payload
        if is_last then
          local message = whole
          whole = ''
          hear(opcode, message)
        end
      end
    end
  end
  return take
end

-- === The connection ===

line.instance = ('%d-%d-%s'):format(
  uv.os_getpid(),
  os.time(),
  text.sha256('\0' .. uv.hrtime() .. tostring({})):sub(1, 16)
)
line.started_at_ms = math.floor((function()
  local s, us = uv.gettimeofday()
  return s * 1000 + us / 1000
end)())
line.state, line.failures = 'not connected yet', 0

-- Where the daemon is: its socket and the editors' secret. Looked up for every connection, as it may have moved.
function line.find()
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

function line.dial()
  if line.pipe or vim.v.dying > 0 then return end
  roots.open = roots.wanted()
  if #roots.open == 0 then
    line.state = 'no folder is open: start Neovim in one, or set g:prism_roots'
    return
  end
  local socket, token = line.find()
  if not socket then return line.lost(nil, token) end
  local pipe = uv.new_pipe(false)
  line.pipe, line.state = pipe, 'connecting'
  line.ui = has_ui()
  pipe:connect(
    socket,
    vim.schedule_wrap(function(why)
      if line.pipe ~= pipe then return end
      if why then return line.lost(pipe, 'the socket does not answer: ' .. why) end
      line.greet(pipe, token)
    end)
  )
end

-- The handshake. The server's Sec-WebSocket-Accept proves to a page that no cache has answered; a Unix socket has none.
function line.greet(pipe, token)
  local key = text.to_base64(text.sha256('\0' .. uv.hrtime()):sub(1, 16))
  pipe:write(
    table.concat(
      {
        'GET /plugin/neovim HTTP/1.1',
        'Host: localhost',
        'Upgrade: websocket',
        'Connection: Upgrade',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: ' .. key,
        'Authorization: Bearer ' .. token,
        '',
        '',
      },
      '\r\n'
    )
  )
  local head, reader = '', nil
  pipe:read_start(function(why, bytes)
    if why or not bytes then
      return vim.schedule(function() line.lost(pipe, why or 'the daemon hung up') end)
    end
    if not reader then
      head = head .. bytes
      local ends = select(2, head:find('\r\n\r\n', 1, true))
      if not ends then
        if #head > 65536 then vim.schedule(function() line.lost(pipe, 'no answer to the handshake') end) end
        return
      end
      if not head:match('^HTTP/1%.1 101') then
        local status = head:match('^[^\r\n]*')
        return vim.schedule(function() line.lost(pipe, 'the daemon refuses: ' .. status) end)
      end
      reader = frame.reader(function(opcode, payload)
        vim.schedule(function()
          if line.pipe == pipe then line.hear(opcode, payload) end
        end)
      end)
      bytes = head:sub(ends + 1)
      vim.schedule(function()
        if line.pipe == pipe then line.register() end
      end)
    end
    local trouble = reader(bytes)
    if trouble then vim.schedule(function() line.lost(pipe, trouble) end) end
  end)
end

function line.register()
  voice.seq, voice.told, line.is_registered = 0, nil, false
  local capabilities = vim.tbl_keys(verbs)
  table.sort(capabilities)
  line.send({
    type = 'register',
    protocol = 1,
    instance_id = line.instance,
    kind = 'neovim',
    version = VERSION,
    ui = line.ui,
    decides = line.ui and vim.g.prism_decides ~= false,
    pid = uv.os_getpid(),
    started_at_ms = line.started_at_ms,
    roots = roots.open,
    capabilities = capabilities,
  })
end

function line.send(message)
  local pipe = line.pipe
  if not pipe then return end
  local ok, json = pcall(vim.json.encode, message)
  if (not ok or #json > MAX_MESSAGE) and message.type == 'result' then
    local code = ok and 'too_large' or 'failed'
    json = vim.json.encode({
      type = 'result',
      id = message.id,
      status = 'error',
      error = { code = code, message = 'the answer does not fit into a message; ask for less of it' },
    })
  elseif not ok or #json > MAX_MESSAGE then
    return
  end
  if uv.stream_get_write_queue_size(pipe) > MAX_UNSENT then return line.lost(pipe, 'the daemon does not read') end
  pipe:write(frame.text(json))
end

local CLOSED = { [1008] = 'the token is wrong', [4008] = 'Neovim did not answer in time', [1001] = 'Prism stopped' }

function line.hear(opcode, payload)
  if opcode == 9 then return line.pipe:write(frame.text(payload, 10)) end
  if opcode == 8 then
    local code = #payload >= 2 and payload:byte(1) * 256 + payload:byte(2) or 1005
    return line.lost(line.pipe, CLOSED[code] or ('closed with %d %s'):format(code, payload:sub(3)))
  end
  if opcode ~= 1 then return end
  local ok, message = pcall(vim.json.decode, payload, { luanil = { object = true } })
  if not ok or type(message) ~= 'table' then return end
  local heard = line.heard[message.type]
  if heard then heard(message) end
end

-- Messages of the daemon's, by type. Others are passed over.
line.heard = {
  registered = function(message)
    line.is_registered, line.failures, line.id = true, 0, message.assigned_id
    line.state = 'connected as ' .. tostring(message.assigned_id)
    buffers.look_around()
    voice.state()
  end,
  cmd = function(message) commands.run(message) end,
  cancel = function(message) commands.cancel(message.id) end,
  get_state = function()
    for _, record in ipairs(buffers.all()) do
      buffers.now(record)
    end
    voice.state()
  end,
  -- This runs in Neovim's main loop, which a prompt or a long command holds up: an editor that nobody can use does not
  -- answer.
  ping = function(message) line.send({ type = 'pong', id = message.id, ui = has_ui() }) end,
  error = function(message) line.complaint = (message.error or {}).message end,
}

-- Ends a connection and dials again, later each time.
function line.lost(pipe, why)
  if pipe and line.pipe ~= pipe then return end
  if pipe and not pipe:is_closing() then pipe:close() end
  line.pipe, line.is_registered, line.state = nil, false, why
  commands.cancel_all()
  line.failures = line.failures + 1
  local pause = math.min(250 * 2 ^ (line.failures - 1), 10000)
  line.wait(pause * (0.75 + math.random() / 2))
end

function line.wait(ms)
  line.timer = line.timer or uv.new_timer()
  line.timer:stop()
  line.timer:start(math.floor(ms), 0, vim.schedule_wrap(line.dial))
end

-- Connects anew at once, as what was registered is no longer so.
function line.again()
  if line.pipe and not line.pipe:is_closing() then line.pipe:close() end
  line.pipe, line.is_registered, line.failures = nil, false, 0
  commands.cancel_all()
  line.dial()
end

-- === The person ===

function M.status()
  local lines = { 'Prism: ' .. line.state, 'folders: ' .. table.concat(roots.open or {}, ', ') }
  if line.complaint then lines[#lines + 1] = 'the daemon says: ' .. line.complaint end
  local at_work = vim.tbl_count(commands.running)
  if at_work > 0 then lines[#lines + 1] = ('%d commands of agents are at work'):format(at_work) end
  return table.concat(lines, '\n')
end

function M.reconnect() line.again() end

-- What waits for the person, as the daemon last said: requests of agents, changes to confirm, configs to see, and the
-- grants that are alive. Nothing is asked unasked: a question that pops up would be answered by the key that was meant
-- for the text. `windows` are those in which a config is shown.
local desk = { requests = {}, confirmations = {}, grants = {}, configs = {}, seen = {}, windows = {}, last = 0 }

-- Words of an agent, on one line and without what could draw something else on the screen.
local function plainly(words) return (tostring(words):gsub('%c+', ' ')) end

local function touches(folders)
  for _, folder in ipairs(folders or {}) do
    for _, root in ipairs(roots.open or {}) do
      if is_beneath(folder, root) or is_beneath(root, folder) then return true end
    end
  end
  return false
end

local function about_request(request)
  return ('%s asks for %s in %s: %s'):format(
    plainly(request.agent_id),
    table.concat(request.scopes or {}, ', '),
    plainly(table.concat(request.roots or {}, ', ')),
    plainly(request.reason or '')
  )
end

local function about_confirmation(confirmation)
  return ('%s wants to %s'):format(
    plainly(confirmation.agent_id),
    plainly((confirmation.shown or {}).action or confirmation.kind)
  )
end

local function about_config(config) return 'A config waits for you to see it: ' .. plainly(config.why) end

-- Another text under the same name is another.
local function key_of(config) return vim.inspect({ config.path, config.why, config.unified }) end

-- Says something at the bottom of the screen, in one line: more would have Neovim wait for the person's Enter.
local function mention(words)
  local room = math.max((vim.v.echospace or 60) - 1, 20)
  if fn.strdisplaywidth(words) > room then
    words = fn.strcharpart(words, 0, math.floor(room / 2)) .. '… (:PrismDecide)'
  end
  vim.notify(words)
end

local function close(window)
  -- The last one cannot be closed.
  if api.nvim_win_is_valid(window) then pcall(api.nvim_win_close, window, true) end
end

function line.heard.desk(message)
  desk.requests, desk.confirmations, desk.grants =
    message.requests or {}, message.confirmations or {}, message.grants or {}
  desk.configs = message.configs or {}
  vim.g.prism_waiting = #desk.requests + #desk.confirmations + #desk.configs
  local seen = {}
  for _, request in ipairs(desk.requests) do
    seen[request.request_id] = true
    if not desk.seen[request.request_id] and touches(request.roots) then
      mention(('Prism: %s (:PrismDecide)'):format(about_request(request)))
    end
  end
  for _, confirmation in ipairs(desk.confirmations) do
    seen[confirmation.confirmation_id] = true
    if not desk.seen[confirmation.confirmation_id] then
      mention(('Prism: %s (:PrismDecide)'):format(about_confirmation(confirmation)))
    end
  end
  for _, config in ipairs(desk.configs) do
    local key = key_of(config)
    seen[key] = true
    if not desk.seen[key] then mention(('Prism: %s (:PrismDecide)'):format(about_config(config))) end
  end
  for key, window in pairs(desk.windows) do
    if not seen[key] then
      desk.windows[key] = nil
      close(window)
    end
  end
  desk.seen = seen
end

function line.heard.decided(message)
  if message.status == 'error' then mention('Prism: ' .. plainly((message.error or {}).message)) end
end

local function say(word)
  desk.last = desk.last + 1
  word.id = desk.last
  line.send(word)
end

-- What is to be decided on, whole, for a person to read.
local function in_full(item)
  if item.request_id then
    local request = item
    return {
      about_request(request),
      'new for this agent: ' .. table.concat(request.new_scopes or {}, ', '),
      ('for %d minutes'):format(math.ceil((request.ttl_seconds or 0) / 60)),
    }
  end
  local is_config = item.fix ~= nil
  local shown = is_config and item or (item.shown or {}).shown or item.shown or {}
  -- A config is only shown: its word is given in a terminal.
  local lines = is_config and { about_config(item), 'In a terminal: ' .. plainly(item.fix), '' }
    or { about_confirmation(item), '' }
  local body = shown.unified or (shown.lines and table.concat(shown.lines, '\n')) or vim.inspect(shown)
  for _, words in ipairs(vim.split(body, '\n', { plain = true })) do
    lines[#lines + 1] = plainly(words)
  end
  for _, why in ipairs((item.shown or {}).because or {}) do
    lines[#lines + 1] = 'because ' .. plainly(why)
  end
  if item.is_cut and not is_config then
    lines[#lines + 1] = '(This is not all of it: it can be denied here, and allowed in the console.)'
  end
  return lines
end

function M.decide()
  local items = {}
  vim.list_extend(items, desk.confirmations)
  vim.list_extend(items, desk.requests)
  vim.list_extend(items, desk.configs)
  if #items == 0 then return vim.notify('Prism: nothing waits for you') end
  local function label(item)
    if item.fix then return about_config(item) end
    return item.request_id and about_request(item) or about_confirmation(item)
  end
  vim.ui.select(items, { prompt = 'Prism', format_item = label }, function(item)
    if not item then return end
    vim.cmd('botright new')
    local window, buffer = api.nvim_get_current_win(), api.nvim_get_current_buf()
    vim.bo[buffer].buftype, vim.bo[buffer].bufhidden, vim.bo[buffer].modeline = 'nofile', 'wipe', false
    api.nvim_buf_set_lines(buffer, 0, -1, true, in_full(item))
    vim.bo[buffer].modifiable, vim.bo[buffer].syntax = false, 'diff'
    if item.fix then
      local key = key_of(item)
      if desk.windows[key] then close(desk.windows[key]) end
      desk.windows[key] = window
      return
    end
    vim.cmd('redraw')
    vim.ui.select({ 'Deny', 'Allow' }, { prompt = label(item) }, function(word)
      close(window)
      if not word then return end
      say({
        type = 'decide',
        request_id = item.request_id,
        confirmation_id = item.confirmation_id,
        digest = item.digest,
        approve = word == 'Allow',
      })
    end)
  end)
end

function M.revoke()
  if #desk.grants == 0 then return vim.notify('Prism: no agent has a grant') end
  local function label(grant)
    return ('%s in %s'):format(plainly(grant.agent_id), plainly(table.concat(grant.roots or {}, ', ')))
  end
  vim.ui.select(desk.grants, { prompt = 'Take back', format_item = label }, function(grant)
    if grant then say({ type = 'revoke', session_id = grant.session_id }) end
  end)
end

-- Tells of what the person does, and follows where they go.
local function watch()
  local group = api.nvim_create_augroup('prism', {})
  local function on(events, callback) api.nvim_create_autocmd(events, { group = group, callback = callback }) end
  on({ 'BufReadPost', 'BufNewFile', 'BufFilePost' }, function(event)
    vim.schedule(function()
      if not line.is_registered or not api.nvim_buf_is_valid(event.buf) then return end
      local record = buffers.known[event.buf]
      if record and path_of(event.buf) ~= record.path then buffers.forget(record) end
      buffers.meet(event.buf)
    end)
  end)
  on('BufWritePost', function(event)
    local record = buffers.known[event.buf]
    if not record then return end
    local options = vim.bo[event.buf]
    -- Neovim has put a line break at the end of the file and does not say so.
    if options.fixendofline and not options.endofline and not options.binary then options.endofline = true end
    record = buffers.now(record)
    if not record then return end
    buffers.look_at_disk(record)
    record.mirrored = nil
    voice.tell(
      'file_saved',
      { path = record.path, version = record.version, digest = digest_of(record), by = commands.session }
    )
  end)
  -- `:edit!` unloads too, and loads again at once.
  on('BufUnload', function(event)
    vim.schedule(function()
      local record = buffers.known[event.buf]
      if record and not api.nvim_buf_is_loaded(event.buf) then buffers.forget(record) end
    end)
  end)
  on({ 'CursorMoved', 'CursorMovedI', 'ModeChanged', 'WinScrolled' }, voice.soon)
  on('BufEnter', function(event)
    local record = buffers.known[event.buf]
    if record then voice.switched(record, api.nvim_get_current_win()) end
  end)
  on('WinNew', function()
    local pane, session = api.nvim_get_current_win(), commands.session
    if session then return end
    vim.schedule(function()
      if not api.nvim_win_is_valid(pane) or not is_plain(pane) then return end
      local record = buffers.known[api.nvim_win_get_buf(pane)]
      if record then voice.split(record, pane, NIL) end
    end)
  end)
  on('DirChanged', function()
    if vim.g.prism_roots or vim.o.autochdir or vim.v.event.scope ~= 'global' then return end
    vim.schedule(function()
      if not vim.deep_equal(roots.wanted(), roots.open) then line.again() end
    end)
  end)
  -- Whether somebody looks at it is part of the registration.
  on({ 'UIEnter', 'UILeave' }, function()
    vim.schedule(function()
      if line.pipe and line.ui ~= has_ui() then line.again() end
    end)
  end)
  -- Keys that verbs and mappings press are not the person's; 0.10 and newer say which these are.
  vim.on_key(function(_, typed)
    if not commands.session and typed ~= '' then commands.typed_at = uv.now() end
  end, api.nvim_create_namespace('prism'))
end

function M.start()
  if not api.nvim_create_autocmd or not vim.json or not uv.new_pipe then return end
  math.randomseed(uv.hrtime() % 2 ^ 31)
  watch()
  api.nvim_create_user_command(
    'PrismStatus',
    function() vim.notify(M.status()) end,
    { desc = 'How Neovim is connected to Prism' }
  )
  api.nvim_create_user_command('PrismReconnect', M.reconnect, { desc = 'Connect to Prism anew' })
  api.nvim_create_user_command('PrismDecide', M.decide, { desc = 'Answer what agents ask Prism for' })
  api.nvim_create_user_command('PrismRevoke', M.revoke, { desc = 'Take a grant back from an agent' })
  -- Once the screen is there: the code for language servers takes its time to load.
  local function begin()
    vim.schedule(function()
      lsp.listen()
      line.dial()
    end)
  end
  if vim.v.vim_did_enter == 1 then return begin() end
  api.nvim_create_autocmd('VimEnter', { once = true, callback = begin })
end

-- For the tests beside this file.
M.parts =
  { text = text, place = place, frame = frame, vim_pattern = vim_pattern, glob_of = glob_of, voice = voice, line = line }

if not vim.g.loaded_prism then
  vim.g.loaded_prism = 1
  M.start()
end

return M
