-- Texts as bytes: whether bytes are a text, their digest, and what differs between two.

local M = {}

-- The largest text that is opened or written.
M.MAX_BYTES = 5 * 1024 * 1024
M.BOM = '\239\187\191'

-- UTF-8 (RFC 3629, 4) without NUL. Anything else would not survive JSON, or Neovim's lines.
local R, P = vim.lpeg.R, vim.lpeg.P
local tail = R('\128\191')
local long = P('\224') * R('\160\191') + P('\237') * R('\128\159') + R('\225\236', '\238\239') * tail
local longer = P('\240') * R('\144\191') + P('\244') * R('\128\143') + R('\241\243') * tail
local utf8 = (R('\1\127') ^ 1 + R('\194\223') * tail + long * tail + longer * tail * tail) ^ 0 * -1

function M.is_text(bytes) return utf8:match(bytes) ~= nil end

-- Returns the SHA-256 in hex. Before 0.12 Neovim's own takes no NUL, which only files have that are no texts.
function M.digest(bytes)
  if vim.fn.has('nvim-0.12') == 1 or not bytes:find('\0', 1, true) then return vim.fn.sha256(bytes) end
  -- It lets nothing else have its turn meanwhile.
  return vim.system({ 'sha256sum' }, { stdin = bytes }):wait().stdout:match('^%x+')
end

-- Reads what `vim.base64.encode` writes, and nothing that merely looks like it.
function M.from_base64(encoded)
  local ok, bytes = pcall(vim.base64.decode, encoded)
  return ok and vim.base64.encode(bytes) == encoded and bytes or nil
end

-- Returns words of an agent on one line, without what could draw something else on the screen.
function M.one_line(words) return (tostring(words):gsub('%c+', ' ')) end

-- Returns whether a list comes before another, by the first of its elements that differs.
function M.comes_before(a, b)
  for i, one in ipairs(a) do if one ~= b[i] then return one < b[i] end end
  return false
end

function M.count_lines(whole)
  local breaks = select(2, whole:gsub('\n', '\n'))
  return breaks + ((whole ~= '' and whole:sub(-1) ~= '\n') and 1 or 0)
end

-- Returns how many lines two texts have in common at their begin and at their end, leaving one of each.
function M.common_lines(old, new)
  local most, first, last = math.min(#old, #new) - 1, 0, 0
  while first < most and old[first + 1] == new[first + 1] do first = first + 1 end
  while last < most - first and old[#old - last] == new[#new - last] do last = last + 1 end
  return first, last
end

-- Returns the difference as `diff -u` has it.
function M.unified(path, old, new)
  path = path:gsub('%c', '\239\191\189')
  local diff = vim.text.diff or vim.diff
  return ('--- %s\n+++ %s\n%s'):format(path, path, diff(old, new, { result_type = 'unified', ctxlen = 3 }))
end

return M
