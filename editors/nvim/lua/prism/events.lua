-- What agents are told of what happens in Neovim, and the daemon of what is unsaved.

local commands, connection = require('prism.commands'), require('prism.connection')
local position, text = require('prism.position'), require('prism.text')

-- The number of the last event of this connection.
local M = { seq = 0 }

-- Edits that agents are told along with a change, and those that the daemon makes on the text that it keeps, in bytes.
local MAX_TOLD, MAX_SENT = 8 * 1024, 64 * 1024

-- Tells of something that happened, by the session whose command runs, if one does.
function M.tell(event, data)
  if not connection.is_registered then return end
  M.seq = M.seq + 1
  data.by = commands.session
  connection.send({ type = 'event', event = event, seq = M.seq, data = data })
end

-- Returns the lines that differ, as one edit of the text before. Of texts whose lines are not Neovim's there is none.
function M.edit_between(before, now)
  if now.separator ~= '\n' or now.bomb or before.text:find('\r', 1, true) then return nil end
  local old, new = before.lines, now.lines
  local first, last = text.common_lines(old, new)
  if before.text == '' or now.text == '' or before.has_end ~= now.has_end then last = 0 end
  local start = { line = first, character = 0 }
  if last > 0 then
    local words = first < #new - last and table.concat(new, '\n', first + 1, #new - last) .. '\n' or ''
    return { range = { start = start, ['end'] = { line = #old - last, character = 0 } }, new_text = words }
  end
  local offset = 0
  for i = 1, first do offset = offset + #new[i] + 1 end
  local ends = position.at(before.text, position.lines(before.text), #before.text)
  return { range = { start = start, ['end'] = ends }, new_text = now.text:sub(offset + 1) }
end

-- Tells of a change: with the edits against the version before, and with all of the text where the daemon does not have
-- that version.
function M.changed(buffer, before, reason)
  local data = { path = buffer.path, version = buffer.version, is_dirty = vim.bo[buffer.bufnr].modified }
  data.reason = reason or 'edit'
  local has_base = data.is_dirty and buffer.mirrored == before.version
  buffer.mirrored = data.is_dirty and buffer.version or nil
  local edit = M.edit_between(before, buffer)
  if edit and #edit.new_text <= (has_base and MAX_SENT or MAX_TOLD) then data.edits = { edit } end
  if has_base and data.edits then
    data.base_version = before.version
  elseif data.is_dirty then
    data.text = buffer.text
  end
  M.tell('buffer_changed', data)
end

-- Tells all that is open, with the text of what is unsaved. A message has a bound: what does not fit follows by itself.
function M.state(buffers)
  local listed, later, room = {}, {}, text.MAX_BYTES
  for _, buffer in ipairs(buffers) do
    local one = { path = buffer.path, version = buffer.version, is_dirty = vim.bo[buffer.bufnr].modified }
    local fits = one.is_dirty and #buffer.text <= room
    if fits then room = room - #buffer.text end
    if one.is_dirty and not fits then later[#later + 1] = buffer end
    buffer.mirrored = fits and buffer.version or nil
    listed[#listed + 1] = vim.tbl_extend('error', one, { text = fits and buffer.text or nil })
  end
  connection.send({ type = 'state', seq = M.seq, buffers = listed })
  for _, buffer in ipairs(later) do
    buffer.mirrored = buffer.version
    local data = { path = buffer.path, version = buffer.version, is_dirty = true, text = buffer.text }
    M.tell('buffer_changed', data)
  end
end

return M
