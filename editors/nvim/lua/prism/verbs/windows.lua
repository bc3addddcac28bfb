-- Verbs about windows, cursors and selections, which are the person's own; and what is told of them.

local arguments, buffers, commands = require('prism.arguments'), require('prism.buffers'), require('prism.commands')
local events, has_ui = require('prism.events'), require('prism.connection').has_ui
local position, refusal, text = require('prism.position'), require('prism.refusal'), require('prism.text')

local refuse, wrong, quoted, verb = refusal.refuse, refusal.wrong, refusal.quoted, commands.verb
local api, fn = vim.api, vim.fn
-- `typed_at` is when the person has last pressed a key.
local M = { panes = {}, told = {} }

-- Windows of a tab page; no further one is split.
local MAX_PANES = 16
-- How long the person's keys rest before a window is changed under their hands, and how long is waited for that.
local QUIET_MS, PATIENCE_MS = 1000, 5000

-- Waits until the person does not type: the next key would go into another text.
local function wait_for_quiet()
  local function is_quiet() return not M.typed_at or vim.uv.now() - M.typed_at >= QUIET_MS end
  if not is_quiet() and not commands.await_so(PATIENCE_MS, is_quiet) then
    refusal.refuse_for(2000, 'rate_limited', 'the person is typing in Neovim; try again')
  end
  if api.nvim_get_mode().mode:match('^[iR]') then vim.cmd('stopinsert') end
end

function M.is_plain(window)
  local bufnr = api.nvim_win_get_buf(window)
  return api.nvim_win_get_config(window).relative == '' and vim.bo[bufnr].buftype == ''
end

-- Shows a buffer: in a window that has it, else in the current one, or where that is none for files, in another.
local function show(buffer)
  local plain, current = vim.tbl_filter(M.is_plain, api.nvim_tabpage_list_wins(0)), api.nvim_get_current_win()
  local function has_it(window) return api.nvim_win_get_buf(window) == buffer.bufnr end
  local window = vim.iter(plain):find(has_it) or M.is_plain(current) and current or plain[#plain]
  if not window then vim.cmd('silent split') end
  window = window or api.nvim_get_current_win()
  api.nvim_set_current_win(window)
  if not has_it(window) then
    local ok, why = pcall(api.nvim_win_set_buf, window, buffer.bufnr)
    if not ok then refuse('failed', 'Neovim keeps what the window shows: %s', tostring(why)) end
  end
  buffer.is_ours = false
  return window
end

-- Tells once which text is looked at.
function M.switched(buffer, window)
  local at = ('%d %d'):format(window, buffer.bufnr)
  if M.active ~= at then events.tell('tab_switched', { path = buffer.path, pane = window }) end
  M.active = at
end

function M.split(buffer, pane, direction)
  if M.panes[pane] then return end
  M.panes[pane] = true
  events.tell('pane_split', { path = buffer.path, pane = pane, direction = direction })
end

verb('switch_buffer', { path = 'text' }, function(args)
  local buffer = buffers.open(args.path)
  wait_for_quiet()
  local window = show(buffer)
  M.switched(buffer, window)
  return { path = buffer.path, pane = window, is_active = true, ui = has_ui() }
end)

local SPLITS = { right = 'silent rightbelow vsplit', down = 'silent rightbelow split' }

verb('split_pane', { path = 'text?', direction = 'text?' }, function(args)
  local direction = args.direction or 'right'
  local split = SPLITS[direction] or wrong('`direction` is "right" or "down", not %s', quoted(direction))
  local buffer = args.path and buffers.open(args.path) or buffers.known[api.nvim_get_current_buf()]
  if not buffer then wrong('no buffer is active; name one by `path`') end
  if #api.nvim_tabpage_list_wins(0) >= MAX_PANES then wrong('there are %d panes; close a buffer first', MAX_PANES) end
  wait_for_quiet()
  local ok, why = pcall(vim.cmd, split)
  if not ok then refuse('failed', 'Neovim has no room for a further window: %s', tostring(why)) end
  local pane, panes = api.nvim_get_current_win(), {}
  api.nvim_win_set_buf(pane, buffer.bufnr)
  buffer.is_ours = false
  for _, window in ipairs(api.nvim_tabpage_list_wins(0)) do
    local shown, is_new = buffers.known[api.nvim_win_get_buf(window)], window == pane
    local one = { id = window, direction = is_new and direction or vim.NIL, is_active = is_new }
    if shown then panes[#panes + 1] = vim.tbl_extend('error', one, { path = shown.path }) end
  end
  M.split(buffer, pane, direction)
  return { pane = pane, panes = panes, ui = has_ui() }
end)

-- Where one of Neovim's lines begins in the text, in bytes.
local function begin_of(buffer, row)
  local offset = buffer.bomb and 3 or 0
  for i = 1, math.min(row, #buffer.lines) do offset = offset + #buffer.lines[i] + #buffer.separator end
  return offset
end

-- Returns the byte of one of Neovim's lines as a position of the text.
local function told_position(buffer, row, column)
  local offset = begin_of(buffer, row) + math.min(column, #(buffer.lines[row + 1] or ''))
  return position.at(buffer.text, buffers.lines(buffer), offset)
end

-- The other way round.
local function spot_of(buffer, given)
  local offset, why = position.offset(buffer.text, buffers.lines(buffer), given)
  local row = 0
  if not offset then wrong(why) end
  while row < #buffer.lines - 1 and begin_of(buffer, row + 1) <= offset do row = row + 1 end
  return row, math.max(0, math.min(offset - begin_of(buffer, row), #buffer.lines[row + 1]))
end

local function cursor_in(buffer, window)
  local at = window and api.nvim_win_get_cursor(window) or api.nvim_buf_get_mark(buffer.bufnr, '"')
  return told_position(buffer, math.max(at[1], 1) - 1, at[2])
end

-- Returns what is selected in the current window; nil if nothing is.
local function selection_in(buffer, window)
  local mode = api.nvim_get_mode().mode:sub(1, 1)
  if window ~= api.nvim_get_current_win() or not mode:match('[vV\22]') then return nil end
  local from, to = fn.getpos('v'), fn.getpos('.')
  local first, last = { from[2] - 1, from[3] - 1 }, { to[2] - 1, to[3] - 1 }
  if text.comes_before(last, first) then first, last = last, first end
  local words = buffer.lines[last[1] + 1] or ''
  if mode == 'V' then
    first[2], last[2] = 0, #words
  elseif vim.o.selection ~= 'exclusive' and last[2] >= #words and buffer.lines[last[1] + 2] then
    -- Neovim's end is the last character, ours is behind it; behind the last one of a line it is the line break.
    last = { last[1] + 1, 0 }
  elseif vim.o.selection ~= 'exclusive' then
    last[2] = position.behind(words, last[2])
  end
  return { start = told_position(buffer, first[1], first[2]), ['end'] = told_position(buffer, last[1], last[2]) }
end

-- Tells where the person is, as far as that is another place than was told last.
function M.tell()
  local window = api.nvim_get_current_win()
  local known = buffers.known[api.nvim_win_get_buf(window)]
  local buffer = known and buffers.refresh(known)
  if not buffer then return end
  local function tell(event, data)
    local told = vim.json.encode(data)
    if M.told[event] ~= told then events.tell(event, data) end
    M.told[event] = told
  end
  local path, range = buffer.path, selection_in(buffer, window)
  tell('cursor_moved', { path = path, position = cursor_in(buffer, window) })
  if not range then M.told.selection_changed = nil end
  if range then tell('selection_changed', { path = path, range = range }) end
  local first, last = fn.line('w0', window) - 1, fn.line('w$', window) - 1
  tell('viewport_changed', { path = path, first_line = first, last_line = last })
end

-- Returns the text that is named, or looked at, and a window that shows it, if one does.
local function looked_at(path)
  local current = api.nvim_get_current_buf()
  local buffer = path and buffers.open(path) or buffers.known[current]
  if not buffer then refuse('not_found', 'no buffer is active; name one by `path`, or switch_buffer') end
  local window = buffer.bufnr == current and api.nvim_get_current_win() or fn.win_findbuf(buffer.bufnr)[1]
  return buffers.refresh(buffer), window
end

verb('get_cursor_pos', { path = 'text?' }, function(args)
  local buffer, window = looked_at(args.path)
  return { path = buffer.path, position = cursor_in(buffer, window), ui = has_ui() }
end)

-- Selects from one place to behind another. The cursor is at the end.
local function select(buffer, window, first, last)
  local row, column = last[1], last[2]
  if vim.o.selection ~= 'exclusive' and column == 0 and row > first[1] then
    row, column = row - 1, #buffer.lines[row]
  elseif vim.o.selection ~= 'exclusive' then
    column = column - 1 + vim.str_utf_start(buffer.lines[row + 1], column)
  end
  -- Only while something is selected can the cursor be behind the last character of a line.
  vim.cmd('normal! v')
  api.nvim_win_set_cursor(window, { first[1] + 1, first[2] })
  vim.cmd('normal! o')
  api.nvim_win_set_cursor(window, { row + 1, column })
end

verb('set_cursor_pos', { path = 'text', position = 'position', selection = 'range?' }, function(args)
  local buffer, range = buffers.open(args.path), args.selection
  local at, first, last = { spot_of(buffer, args.position) }, nil, nil
  if range then first, last = { spot_of(buffer, range.start) }, { spot_of(buffer, range['end']) } end
  wait_for_quiet()
  local window = show(buffer)
  -- A selection of before ends with this.
  if api.nvim_get_mode().mode:match('^[vV\22]') then vim.cmd('normal! \27') end
  if range and text.comes_before(last, first) then first, last = last, first end
  if range and not vim.deep_equal(first, last) then
    select(buffer, window, first, last)
    if vim.deep_equal(at, first) then vim.cmd('normal! o') end
  else
    api.nvim_win_set_cursor(window, { at[1] + 1, at[2] })
  end
  local told = cursor_in(buffer, window)
  M.tell()
  return { path = buffer.path, position = told, ui = has_ui() }
end)

verb('get_selection', { path = 'text?' }, function(args)
  local buffer, window = looked_at(args.path)
  local cursor = cursor_in(buffer, window)
  local range = selection_in(buffer, window) or { start = cursor, ['end'] = cursor }
  local function offset(there) return position.offset(buffer.text, buffers.lines(buffer), there) end
  local words = buffer.text:sub(offset(range.start) + 1, (offset(range['end'])))
  return { path = buffer.path, range = range, text = words, ui = has_ui() }
end)

local VIEWPORT = { path = 'text', first_line = arguments.LINE, last_line = arguments.LINE }

verb('sync_viewport', VIEWPORT, function(args)
  local first, last = args.first_line, args.last_line
  if first and last and first > last then wrong('`first_line` comes after `last_line`') end
  local buffer, window = looked_at(args.path)
  if first or last then
    wait_for_quiet()
    window = show(buffer)
    local height, count = api.nvim_win_get_height(window), #buffer.lines
    local top = math.min(first or math.max(last - height + 1, 0), count - 1)
    api.nvim_win_call(window, function()
      local cursor = math.max(top + 1, math.min(fn.line('.'), top + height))
      fn.winrestview({ topline = top + 1, lnum = math.min(cursor, count), col = 0 })
    end)
    M.told.viewport_changed = nil
  elseif not window then
    refuse('not_found', 'no window shows %s; switch_buffer does', quoted(args.path))
  end
  local seen = { path = buffer.path, first_line = fn.line('w0', window) - 1, last_line = fn.line('w$', window) - 1 }
  M.tell()
  return vim.tbl_extend('error', seen, { ui = has_ui() })
end)

return M
