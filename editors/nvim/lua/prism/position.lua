-- Positions in a text: a line, and UTF-16 units in it, both from zero; or, where a language server counts so, bytes or
-- characters. A line ends with \n, \r\n or \r: so LSP counts, and not Neovim.

local M = {}

local function is_plain(line, encoding) return encoding == 'utf-8' or not line:find('[\128-\255]') end

-- Returns the units before a byte of a line.
function M.to_units(line, byte, encoding)
  if is_plain(line, encoding) then return math.min(byte, #line) end
  local characters, units = vim.str_utfindex(line, math.min(byte, #line))
  return encoding == 'utf-32' and characters or units
end

-- Returns the bytes before a position in a line: nil if it is within a character. Beyond the end is the end, as in LSP.
function M.to_byte(line, units, encoding)
  if is_plain(line, encoding) then return math.min(units, #line) end
  if units >= M.to_units(line, #line, encoding) then return #line end
  local byte = vim.str_byteindex(line, units, encoding ~= 'utf-32')
  return M.to_units(line, byte, encoding) == units and byte or nil
end

-- Returns the byte behind the character that begins at one.
function M.behind(line, byte) return byte >= #line and #line or byte + 1 + vim.str_utf_end(line, byte + 1) end

-- Returns where each line begins and where it ends without its break, in bytes from zero. What follows the last break is
-- a line too.
function M.lines(whole)
  local lines, start = {}, 1
  local is_unix = not whole:find('\r', 1, true)
  while true do
    local at = whole:find(is_unix and '\n' or '[\r\n]', start, is_unix)
    if not at then break end
    lines[#lines + 1] = { start - 1, at - 1 }
    start = whole:sub(at, at + 1) == '\r\n' and at + 2 or at + 1
  end
  lines[#lines + 1] = { start - 1, #whole }
  return lines
end

-- Returns the byte at a position, or nil and why there is none.
function M.offset(whole, lines, position, encoding)
  local found = lines[position.line + 1]
  if not found then return nil, ('there is no line %d; the last is %d'):format(position.line, #lines - 1) end
  local byte = M.to_byte(whole:sub(found[1] + 1, found[2]), position.character, encoding)
  if byte then return found[1] + byte end
  return nil, ('line %d has no place %d: it is within a character'):format(position.line, position.character)
end

-- Returns the position of a byte.
function M.at(whole, lines, offset, encoding)
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
  local units = M.to_units(whole:sub(start + 1, stop), math.min(offset, stop) - start, encoding)
  return { line = low - 1, character = units }
end

return M
