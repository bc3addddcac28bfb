-- Changes of open texts: planned on versions, then made all or none, each as one step of Neovim's undo; taken back, and
-- written to the disk.

local buffers, disk, events = require('prism.buffers'), require('prism.disk'), require('prism.events')
local position, refusal, roots = require('prism.position'), require('prism.refusal'), require('prism.roots')
local text = require('prism.text')

local refuse, wrong, quoted = refusal.refuse, refusal.wrong, refusal.quoted
local uv, api, fn = vim.uv, vim.api, vim.fn
local M = {}

-- Files that one command changes; more is refused.
M.MAX_FILES = 200

function M.refuse_stale(buffer)
  local told = '%s is at version %d by now; open it again, then make the edit for that'
  refuse('changed', told, quoted(buffer.path), buffer.version)
end

-- Refuses if there is unsaved text at or beneath a path that would be lost.
function M.refuse_dirty(path)
  for _, buffer in ipairs(buffers.all()) do
    if roots.is_beneath(buffer.path, path) and buffers.is_dirty(buffer) then
      local told = '%s has unsaved changes; save_buffer writes them, close_buffer with `discard` drops them'
      refuse('changed', told, quoted(buffer.path))
    end
  end
end

-- Works out what becomes of a text by edits {first, last, new_text} in bytes of it. All are about the same text.
function M.plan(buffer, edits)
  local path, is_modifiable = quoted(buffer.path), vim.bo[buffer.bufnr].modifiable
  local encoded = 'Neovim holds %s in another encoding than it is written in; edit it there'
  if buffer.is_converted then refuse('unsupported', encoded, path) end
  if not is_modifiable then refuse('failed', '%s is not modifiable in Neovim (`:set modifiable`)', path) end
  for i, edit in ipairs(edits) do edit.number = i - 1 end
  local function key(edit) return { edit.first, edit.last, edit.number } end
  table.sort(edits, function(a, b) return text.comes_before(key(a), key(b)) end)
  local pieces, done, last = {}, 0, nil
  for _, edit in ipairs(edits) do
    if edit.first < done then wrong('edits %d and %d overlap', last, edit.number) end
    vim.list_extend(pieces, { buffer.text:sub(done + 1, edit.first), edit.new_text })
    done, last = edit.last, edit.number
  end
  pieces[#pieces + 1] = buffer.text:sub(done + 1)
  local new = table.concat(pieces)
  disk.check_size(new)
  if new:find('\0', 1, true) then wrong('a text cannot hold a NUL') end
  return { buffer = buffer, version = buffer.version, edits = edits, text = new }
end

-- What is told of a change that was made.
function M.told(plan)
  local buffer = plan.buffer
  return {
    path = buffer.path, version = buffer.version, digest = buffers.digest(buffer),
    is_dirty = buffers.is_dirty(buffer), edits = #plan.edits,
  }
end

-- What is told of changes that are only looked at: of each file how many there are, under the name `key`, and the diff.
function M.preview(plans, key)
  local files, diffs = {}, {}
  for i, plan in ipairs(plans) do
    files[i] = { path = plan.buffer.path, version = plan.version, [key] = #plan.edits }
    diffs[i] = text.unified(plan.buffer.path, plan.buffer.text, plan.text)
  end
  return files, table.concat(diffs)
end

-- Ends the undo step that is open, so that what comes next is one of its own. Not while the person inserts into this
-- very buffer: Neovim would lose track of what they type.
local function break_undo(bufnr)
  if api.nvim_get_current_buf() == bufnr and api.nvim_get_mode().mode:match('^[iR]') then return false end
  api.nvim_buf_call(bufnr, function() vim.cmd('let &g:undolevels = &g:undolevels') end)
  return true
end

local function undotree(bufnr) return api.nvim_buf_call(bufnr, function() return fn.undotree() end) end

-- A text has one kind of line break in Neovim; what agents write gets the one that the file has.
local function split(whole, separator)
  if separator ~= '\n' then whole = whole:gsub('\r\n', '\n'):gsub('\r', '\n') end
  return vim.split(whole, '\n', { plain = true })
end

-- Puts each edit in its place, so that marks and cursors stay where they belong. Returns false where that cannot be: an
-- edit touches the break at the very end, which is no place in Neovim, or breaks are more than one byte.
local function put_edits(buffer, plan)
  if buffer.is_empty or buffer.bomb or buffer.separator ~= '\n' then return false end
  if (plan.text:sub(-1) == '\n') ~= buffer.has_end then return false end
  local inner_end = #buffer.text - (buffer.has_end and 1 or 0)
  if vim.iter(plan.edits):any(function(edit) return edit.last > inner_end end) then return false end
  -- A carriage return ends a line for LSP, and is in one for Neovim.
  local bounds, at = {}, 0
  for i, line in ipairs(buffer.lines) do bounds[i], at = { at, at + #line }, at + #line + 1 end
  local function spot(offset) return position.at(buffer.text, bounds, offset, 'utf-8') end
  for i = #plan.edits, 1, -1 do
    local edit = plan.edits[i]
    local first, last, lines = spot(edit.first), spot(edit.last), split(edit.new_text, '\n')
    api.nvim_buf_set_text(buffer.bufnr, first.line, first.character, last.line, last.character, lines)
  end
  return true
end

-- Puts the lines that differ.
local function put_lines(buffer, new)
  local options = vim.bo[buffer.bufnr]
  if buffer.bomb and vim.startswith(new, text.BOM) then
    new = new:sub(#text.BOM + 1)
  elseif buffer.bomb then
    options.bomb = false
  end
  if new == '' then return api.nvim_buf_set_lines(buffer.bufnr, 0, -1, true, {}) end
  local lines = split(new, buffer.separator)
  local has_end = #lines > 1 and lines[#lines] == ''
  if has_end then lines[#lines] = nil end
  local first, last = text.common_lines(buffer.lines, lines)
  local differing = vim.list_slice(lines, first + 1, #lines - last)
  api.nvim_buf_set_lines(buffer.bufnr, first, #buffer.lines - last, true, differing)
  options.endofline = has_end
end

local function put(buffer, plan)
  if not put_edits(buffer, plan) then put_lines(buffer, plan.text) end
  local now = buffers.contents(buffer.bufnr)
  local is_there = now and (buffer.separator ~= '\n' or now.text == plan.text)
  if not is_there then error('the buffer does not hold what was put into it', 0) end
end

-- Textlock, or a plugin of the person's that objects. What was made is taken back.
local function take_back(made, why)
  for i = #made, 1, -1 do
    local buffer = made[i].buffer
    api.nvim_buf_call(buffer.bufnr, function() vim.cmd('silent! undo ' .. made[i].sequence) end)
    vim.bo[buffer.bufnr].endofline = made[i].has_end
    buffers.refresh(buffer, 'undo')
  end
  refusal.refuse_for(1000, 'failed', 'Neovim takes no change now; try again. It says: ' .. tostring(why))
end

-- Makes changes that were planned: all of them, or none if a text is another by now.
function M.make(plans, reason)
  for _, plan in ipairs(plans) do
    local now = buffers.refresh(plan.buffer)
    if not now then refuse('changed', '%s was closed meanwhile; open it again', quoted(plan.buffer.path)) end
    if now.version ~= plan.version then M.refuse_stale(now) end
  end
  local made = {}
  for i, plan in ipairs(plans) do
    local buffer, had_end = plan.buffer, plan.buffer.has_end
    local is_apart = break_undo(buffer.bufnr)
    made[i] = { buffer = buffer, sequence = undotree(buffer.bufnr).seq_cur, has_end = had_end }
    local ok, why = pcall(put, buffer, plan)
    if not ok then take_back(made, why) end
    is_apart = break_undo(buffer.bufnr) and is_apart
    -- A step that holds the person's typing as well is not an agent's to take back.
    local step = { before = had_end, after = vim.bo[buffer.bufnr].endofline }
    if is_apart then buffer.steps[undotree(buffer.bufnr).seq_cur] = step end
    buffers.refresh(buffer, reason)
  end
end

-- Goes back or forth in Neovim's own undo, over steps that agents have made. What the person did is theirs to undo.
function M.retrace(buffer, count, is_back)
  local tree = undotree(buffer.bufnr)
  local sequences, at = vim.tbl_map(function(entry) return entry.seq end, tree.entries), 0
  for i, sequence in ipairs(sequences) do if sequence == tree.seq_cur then at = i end end
  local walk = is_back and vim.iter(vim.list_slice(sequences, 1, at)):rev():totable()
    or vim.list_slice(sequences, at + 1)
  local there_are = 0
  while walk[there_are + 1] and buffer.steps[walk[there_are + 1]] do there_are = there_are + 1 end
  if count > there_are then
    local why = walk[there_are + 1] and "; the one before was made in Neovim and is the person's" or ''
    wrong('%d changes can be %s, not %d%s', there_are, is_back and 'undone' or 'redone', count, why)
  end
  break_undo(buffer.bufnr)
  for i = 1, count do
    api.nvim_buf_call(buffer.bufnr, function() vim.cmd(is_back and 'silent undo' or 'silent redo') end)
    local step = buffer.steps[walk[i]]
    vim.bo[buffer.bufnr].endofline = is_back and step.before or not is_back and step.after
  end
  buffers.refresh(buffer, is_back and 'undo' or 'redo')
end

-- Writes a buffer to its file, unless somebody else has written there.
function M.save(buffer, overwrites)
  local path, options = buffer.path, vim.bo[buffer.bufnr]
  if roots.real(path) ~= path then refuse('changed', '%s leads elsewhere now; look again', quoted(path)) end
  local stat = uv.fs_stat(path)
  local now = stat and text.digest((disk.read(path))) or nil
  if now ~= buffer.disk and now ~= buffers.digest(buffer) and not overwrites then
    local why = now and 'somebody else has changed the file; `overwrite` replaces what they wrote'
      or 'somebody else has removed the file; `overwrite` makes it again'
    refuse('changed', '%s: %s; look again, then try again', quoted(path), why)
  end
  local is_locked = (stat and not uv.fs_access(path, 'W')) or options.readonly
  if is_locked then refuse('failed', '%s is read-only', quoted(path)) end
  -- What was told is what is written: Neovim would put a line break at the end.
  local fixes = options.fixendofline
  options.fixendofline = false
  -- A file that is newer than when Neovim read it would have Neovim ask the person, even with `!`, and wait. Whether it
  -- may be replaced was decided above, so it is out of the way until the new one is there.
  local aside = stat and disk.stamp(stat) ~= buffer.read_stamp and ('%s.prism-%d'):format(path, uv.os_getpid()) or nil
  if aside and not uv.fs_rename(path, aside) then aside = nil end
  local ok, why = pcall(api.nvim_buf_call, buffer.bufnr, function() vim.cmd('silent keepalt lockmarks write!') end)
  if aside and ok then
    uv.fs_chmod(path, disk.permissions(stat))
    uv.fs_unlink(aside)
  elseif aside then
    uv.fs_rename(aside, path)
  end
  options.fixendofline = fixes
  buffers.refresh(buffer)
  if not ok then refuse('failed', '%s cannot be written. Neovim says: %s', quoted(path), tostring(why)) end
  buffers.look_at_disk(buffer)
  local told = M.told({ buffer = buffer, edits = {} })
  told.edits, told.bytes = nil, #buffer.text
  return told
end

-- Neovim keeps the old name of a buffer that was renamed as a buffer of its own.
local function drop_old_name(path)
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    local is_old = api.nvim_buf_get_name(bufnr) == path and not api.nvim_buf_is_loaded(bufnr)
    if is_old then pcall(api.nvim_buf_delete, bufnr, { force = true }) end
  end
end

-- Has a buffer go along with its file to another name, with its unsaved text.
local function move(buffer, path)
  local unsaved, old_path, text_before = buffers.is_dirty(buffer) and buffer.text or nil, buffer.path, buffer.text
  buffer.path = path
  api.nvim_buf_set_name(buffer.bufnr, path)
  drop_old_name(old_path)
  -- Read anew, or Neovim takes the buffer for one that was never read from there, and `:write` would refuse. Nobody is
  -- told of the moment in between.
  buffers.read_again(buffer)
  buffers.look_at_disk(buffer)
  local now = unsaved and buffers.contents(buffer.bufnr)
  if now and now.text ~= unsaved then
    local held = { bufnr = buffer.bufnr, path = path }
    buffers.take(held, now)
    put(held, M.plan(held, { { first = 0, last = #now.text, new_text = unsaved } }))
  end
  buffer.steps, buffer.text = {}, text_before
  buffers.refresh(buffer)
end

-- Closes what was at or beneath a path that is no more. Unsaved text stays, without a file.
function M.removed(path)
  for _, buffer in ipairs(buffers.all()) do
    local is_there = roots.is_beneath(buffer.path, path)
    if is_there and buffers.is_dirty(buffer) then
      buffer.is_other = true
    elseif is_there then
      buffers.close(buffer)
    end
  end
end

-- Has all that is open at or beneath a path go along to another. The daemon takes the unsaved text along by the event.
function M.renamed(path, new_path)
  for _, buffer in ipairs(buffers.all()) do
    if roots.is_beneath(buffer.path, path) then move(buffer, new_path .. buffer.path:sub(#path + 1)) end
  end
  events.tell('file_renamed', { path = path, new_path = new_path })
end

return M
