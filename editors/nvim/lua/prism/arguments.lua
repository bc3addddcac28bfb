-- Arguments of commands, read by a table of what the verb takes. What it does not take is refused: who has mistaken a
-- name should learn of it.

local refusal, text = require('prism.refusal'), require('prism.text')

local wrong, quoted = refusal.wrong, refusal.quoted
local M = {}

local WORDS = {
  text = 'a string', flag = 'true or false', array = 'an array', object = 'an object',
  position = '{line, character}', range = '{start, end}',
}
local MAX_UNIT, ENDS = 2 ^ 32 - 1, { start = 'position', ['end'] = 'position' }

local function kind_of(value)
  if value == nil or value == vim.NIL then return 'null' end
  if type(value) == 'table' then return vim.islist(value) and 'an array' or 'an object' end
  return ({ boolean = 'a boolean', number = 'a number', string = 'a string' })[type(value)] or type(value)
end

local function expect(kind, name, value, is_so)
  if not is_so then wrong('`%s` must be %s, not %s', name, WORDS[kind], kind_of(value)) end
  return value
end

local kinds = {
  text = function(name, value) return expect('text', name, value, type(value) == 'string') end,
  flag = function(name, value) return expect('flag', name, value, type(value) == 'boolean') end,
  array = function(name, value) return expect('array', name, value, kind_of(value) == 'an array') end,
  object = function(name, value) return expect('object', name, value, kind_of(value) == 'an object') end,
}

function kinds.position(name, value)
  local unit = { 0, MAX_UNIT }
  local found = M.read(kinds.object(name, value), { line = unit, character = unit })
  if not found.line then wrong('`%s` has no `line`', name) end
  if not found.character then wrong('`%s` has no `character`', name) end
  return found
end

function kinds.range(name, value) return M.read(kinds.object(name, value), ENDS) end

local function whole_number(name, value, bounds)
  local least, most = unpack(bounds)
  if type(value) == 'number' and value % 1 == 0 and value >= least and value <= most then return value end
  local told = type(value) == 'number' and tostring(value) or kind_of(value)
  wrong('`%s` must be a whole number from %d to %.0f, not %s', name, least, most, told)
end

-- What of a text is counted, and versions.
M.COUNT, M.LINE, M.VERSION = { 1, MAX_UNIT }, { 0, MAX_UNIT }, { 0, 2 ^ 53 }

-- Returns the arguments by name. `takes` says of each what it is: a kind, `?` behind it if it may be left out, or the
-- bounds of a number, which always may. A `flag` that is left out is false.
function M.read(given, takes)
  local found = {}
  for name, kind in pairs(takes) do
    local value = given[name]
    local is_number, is_given = type(kind) == 'table', value ~= nil and value ~= vim.NIL
    local base = not is_number and kind:gsub('%?$', '') or nil
    if is_given then
      found[name] = is_number and whole_number(name, value, kind) or not is_number and kinds[base](name, value)
    elseif kind == 'flag' then
      found[name] = false
    elseif base == kind then
      wrong('`%s` is missing: %s', name, WORDS[base])
    end
  end
  for name in pairs(given) do
    if takes[name] == nil then
      local names = vim.tbl_map(function(known) return '`' .. known .. '`' end, vim.tbl_keys(takes))
      table.sort(names)
      local told = #names == 0 and 'it takes none' or 'it takes ' .. table.concat(names, ', ')
      wrong('there is no argument %s; %s', quoted(tostring(name)), told)
    end
  end
  return found
end

-- Returns what a file is to hold, as bytes.
function M.bytes(content, encoding)
  if content == nil or encoding == nil or encoding == 'utf-8' then return content end
  if encoding ~= 'base64' then wrong('`encoding` is "utf-8" or "base64", not %s', quoted(encoding)) end
  return text.from_base64(content) or wrong('`content` is not base64 (the standard alphabet, padded, no line breaks)')
end

return M
