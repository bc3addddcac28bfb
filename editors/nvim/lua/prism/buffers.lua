-- The texts that are open in Neovim, as far as they are files of the open folders. Each has a version, which grows with
-- every change and by which agents name it.

local disk, events, position = require('prism.disk'), require('prism.events'), require('prism.position')
local refusal, roots, text = require('prism.refusal'), require('prism.roots'), require('prism.text')

local refuse, wrong, quoted = refusal.refuse, refusal.wrong, refusal.quoted
local uv, api, fn = vim.uv, vim.api, vim.fn

-- `known` are buffers by Neovim's number. `on_change` is called for each change, before anything is told of it.
local M = { known = {}, on_change = function() end }
-- Begins where no instance before this one has been: a version never comes twice.
local last_version = os.time() - 1767225600
-- Buffers that agents have opened and nobody looks at. Beyond it the clean ones that were not used lately are closed.
local MAX_OPENED = 256

local function next_version()
  last_version = last_version + 1
  return last_version
end

-- Returns the path of a buffer that shows a file of the open folders, else nil.
function M.path_of(bufnr)
  if not api.nvim_buf_is_loaded(bufnr) or vim.bo[bufnr].buftype ~= '' then return nil end
  local name = api.nvim_buf_get_name(bufnr)
  -- What has a scheme (`term://`, `fugitive://`) is no file.
  if name == '' or name:match('^%a[%w+.-]*://') then return nil end
  local ok, path = pcall(roots.real, name)
  local stat = ok and uv.fs_stat(path)
  return ok and (not stat or stat.type == 'file') and path or nil
end

-- Returns what a buffer holds, as it would be written: nil if that is no text, or too much of it.
function M.contents(bufnr)
  local count, options = api.nvim_buf_line_count(bufnr), vim.bo[bufnr]
  if api.nvim_buf_get_offset(bufnr, count) > text.MAX_BYTES then return nil end
  local now = { lines = api.nvim_buf_get_lines(bufnr, 0, -1, true), has_end = options.endofline, bomb = options.bomb }
  now.separator = ({ dos = '\r\n', mac = '\r' })[options.fileformat] or '\n'
  -- One empty line is a line break, or nothing at all; only this tells.
  local function bytes() return fn.wordcount().bytes end
  now.is_empty = count == 1 and now.lines[1] == '' and api.nvim_buf_call(bufnr, bytes) == 0
  now.text = now.is_empty and '' or table.concat(now.lines, now.separator) .. (now.has_end and now.separator or '')
  if now.bomb then now.text = text.BOM .. now.text end
  return text.is_text(now.text) and now or nil
end

function M.is_dirty(buffer) return vim.bo[buffer.bufnr].modified end

function M.digest(buffer)
  buffer.digest = buffer.digest or text.digest(buffer.text)
  return buffer.digest
end

function M.lines(buffer)
  buffer.bounds = buffer.bounds or position.lines(buffer.text)
  return buffer.bounds
end

-- As other editors call the languages, where Neovim has a name of its own.
local LANGUAGES = { sh = 'shellscript', bash = 'shellscript', javascriptreact = 'javascript' }

function M.language(buffer)
  local filetype = vim.bo[buffer.bufnr].filetype
  if filetype == '' then filetype = vim.filetype.match({ filename = buffer.path }) or vim.NIL end
  return LANGUAGES[filetype] or filetype
end

-- What Neovim says of a buffer's state. If it is the same, so is the text.
local function state_of(bufnr)
  local options = vim.bo[bufnr]
  local tick = api.nvim_buf_get_changedtick(bufnr)
  return ('%d %s %s %s'):format(tick, options.fileformat, tostring(options.endofline), tostring(options.bomb))
end

-- Takes in what a buffer holds. What was worked out from the text before goes.
function M.take(buffer, now)
  buffer.text, buffer.lines, buffer.separator = now.text, now.lines, now.separator
  buffer.has_end, buffer.bomb, buffer.is_empty = now.has_end, now.bomb, now.is_empty
  buffer.digest, buffer.bounds = nil, nil
end

-- Brings what is known of a buffer up to what it holds, tells of the change, and returns it; nil if it is no text any
-- more. The state moves without any change as well (`:write`), so the text itself decides on the version.
function M.refresh(buffer, reason)
  local state = state_of(buffer.bufnr)
  if state == buffer.state then return buffer end
  local now = M.contents(buffer.bufnr)
  if not now then return M.forget(buffer) end
  buffer.state = state
  if now.text ~= buffer.text then
    local before = { text = buffer.text, lines = buffer.lines, version = buffer.version, has_end = buffer.has_end }
    M.take(buffer, now)
    buffer.version = next_version()
    if not M.is_dirty(buffer) then buffer.disk = M.digest(buffer) end
    events.changed(buffer, before, reason)
  end
  return buffer
end

-- Knows a buffer from now on, if it is one to know, and returns it.
function M.meet(bufnr)
  local buffer = M.known[bufnr]
  if buffer then return M.refresh(buffer) end
  local path = M.path_of(bufnr)
  local now = path and M.contents(bufnr)
  if not now then return nil end
  buffer = { bufnr = bufnr, path = path, version = next_version(), born = uv.now(), used = uv.now(), steps = {} }
  M.take(buffer, now)
  buffer.state = state_of(bufnr)
  M.known[bufnr] = buffer
  M.look_at_disk(buffer)
  local function changed()
    if M.known[bufnr] ~= buffer then return true end
    M.on_change()
  end
  api.nvim_buf_attach(bufnr, false, {
    on_lines = function(_, _, tick)
      -- The number by which Neovim names this text to language servers.
      buffer.lines_tick = tick or buffer.lines_tick
      return changed()
    end,
    on_reload = changed,
    on_changedtick = changed,
  })
  events.tell('file_opened', { path = path, version = buffer.version })
  return buffer
end

function M.forget(buffer)
  if M.known[buffer.bufnr] ~= buffer then return end
  M.known[buffer.bufnr] = nil
  events.tell('file_closed', { path = buffer.path })
end

-- Knows all that is open, and no longer what is not.
function M.look_around()
  for bufnr, buffer in pairs(M.known) do
    if not api.nvim_buf_is_valid(bufnr) or M.path_of(bufnr) ~= buffer.path then M.forget(buffer) end
  end
  vim.iter(api.nvim_list_bufs()):each(M.meet)
end

-- Returns what is open, by path.
function M.all()
  local all = vim.tbl_filter(function(buffer) return api.nvim_buf_is_loaded(buffer.bufnr) end, vim.tbl_values(M.known))
  table.sort(all, function(a, b) return a.path < b.path end)
  return all
end

-- Returns the buffer of a path that is open.
function M.at(path)
  for bufnr, buffer in pairs(M.known) do
    if buffer.path == path and api.nvim_buf_is_loaded(bufnr) then return M.refresh(buffer) end
  end
end

-- Notes what the file holds that a buffer was made from. What Neovim shows in another encoding than it is written in is
-- shown, and not edited: the places of one are not those of the other.
function M.look_at_disk(buffer)
  local ok, bytes, stat = pcall(disk.read, buffer.path)
  buffer.disk, buffer.stamp = ok and text.digest(bytes) or nil, ok and disk.stamp(stat) or nil
  buffer.read_stamp, buffer.is_other = buffer.stamp, false
  buffer.is_converted = ok and not M.is_dirty(buffer) and bytes ~= buffer.text
end

-- Lets a clean buffer follow its file; of one with unsaved text it is noted that the file is another.
function M.follow(buffer)
  local stat = uv.fs_stat(buffer.path)
  -- Within the second of a change there may be another with the same stamp.
  if stat and disk.stamp(stat) == buffer.stamp and os.time() - stat.mtime.sec > 1 then return end
  local ok, bytes = pcall(disk.read, buffer.path)
  local now = ok and text.digest(bytes) or nil
  if now == buffer.disk then
    buffer.stamp = disk.stamp(stat)
  elseif M.is_dirty(buffer) then
    buffer.is_other = now ~= M.digest(buffer)
  elseif ok and text.is_text(bytes) then
    M.reload(buffer)
  else
    M.close(buffer)
  end
end

-- Has Neovim read a file. What an agent has written into it is not to set the person's options, as a modeline in it
-- would. Returns what Neovim complained about: mostly a plugin that fails at this kind of file, and then the text is
-- there all the same.
local function without_modelines(work)
  local modeline = vim.go.modeline
  vim.go.modeline = false
  local ok, why = pcall(work)
  vim.go.modeline = modeline
  return not ok and tostring(why):match('^[^\n]*') or nil
end

-- Has Neovim read the file of a buffer anew. Nobody is told of it here.
function M.read_again(buffer)
  without_modelines(function() api.nvim_buf_call(buffer.bufnr, function() vim.cmd('silent lockmarks edit!') end) end)
end

function M.reload(buffer, reason)
  M.read_again(buffer)
  local is_loaded = api.nvim_buf_is_loaded(buffer.bufnr)
  if not is_loaded then refuse('failed', 'Neovim cannot read %s anew', quoted(buffer.path)) end
  buffer.steps = {}
  if M.refresh(buffer, reason or 'disk') then M.look_at_disk(buffer) end
end

-- Loads a file into a buffer that no window shows, and returns its number.
local function load(path)
  local bufnr, had_swap = fn.bufadd(path), false
  -- Neovim would ask the person what to do about it, and wait.
  local function leave() had_swap, vim.v.swapchoice = true, 'q' end
  local swap = api.nvim_create_autocmd('SwapExists', { callback = leave })
  local why = without_modelines(function() vim.cmd(('silent call bufload(%d)'):format(bufnr)) end)
  api.nvim_del_autocmd(swap)
  if had_swap then
    pcall(api.nvim_buf_delete, bufnr, { force = true })
    refuse('failed', '%s has a swap file: another Vim has it open, or died with it; open it once', quoted(path))
  end
  if why and not api.nvim_buf_is_loaded(bufnr) then refuse('failed', 'Neovim says: %s', why) end
  -- The person finds it in `:ls`.
  vim.bo[bufnr].buflisted = true
  return bufnr
end

local function make_room()
  local ours = vim.tbl_filter(function(buffer) return buffer.is_ours end, M.all())
  local function is_idle(buffer) return not M.is_dirty(buffer) and #fn.win_findbuf(buffer.bufnr) == 0 end
  local idle = vim.tbl_filter(is_idle, ours)
  table.sort(idle, function(a, b) return a.used < b.used end)
  for i = 1, math.min(#idle, #ours - MAX_OPENED + 1) do M.close(idle[i]) end
end

-- Returns the buffer of a text file, as the file is now, opened if it was not: nil, the bytes and the real path if it is
-- no text.
function M.find(path)
  path = roots.real(path)
  local buffer = M.at(path)
  if buffer then
    M.follow(buffer)
    buffer = M.at(path)
  end
  if not buffer then
    local bytes = disk.read(path)
    if not text.is_text(bytes) then return nil, bytes, path end
    make_room()
    buffer = M.meet(load(path)) or refuse('failed', 'Neovim does not show %s as a text', quoted(path))
    buffer.is_ours = true
  end
  buffer.used = uv.now()
  return buffer
end

-- The same of what has to be a text.
function M.open(path) return M.find(path) or wrong('%s: it is no text; write_file replaces all of it', quoted(path)) end

-- Closes a buffer. Windows that show it stay, and show another.
function M.close(buffer)
  local others = vim.tbl_filter(function(one) return one.bufnr ~= buffer.bufnr end, fn.getbufinfo({ buflisted = 1 }))
  for _, window in ipairs(fn.win_findbuf(buffer.bufnr)) do
    api.nvim_win_set_buf(window, #others > 0 and others[#others].bufnr or api.nvim_create_buf(true, false))
  end
  M.forget(buffer)
  vim.cmd(('silent! bdelete! %d'):format(buffer.bufnr))
end

return M
