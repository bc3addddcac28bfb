-- Follows what the person does in Neovim, and tells of it.

local buffers, commands, connection = require('prism.buffers'), require('prism.commands'), require('prism.connection')
local events, roots, windows = require('prism.events'), require('prism.roots'), require('prism.verbs.windows')

local api = vim.api
-- How long changes are gathered before they are told. Each time there are four events at most, so it stays within 500 a
-- second.
local PAUSE_MS = 10

local is_gathering = false

-- Tells what has changed, a moment from now.
local function tell_soon()
  if is_gathering then return end
  is_gathering = true
  vim.defer_fn(function()
    is_gathering = false
    vim.iter(buffers.all()):each(buffers.refresh)
    windows.tell()
  end, PAUSE_MS)
end

local group = api.nvim_create_augroup('prism', {})
local function on(names, callback) api.nvim_create_autocmd(names, { group = group, callback = callback }) end

buffers.on_change = tell_soon
on({ 'CursorMoved', 'CursorMovedI', 'ModeChanged', 'WinScrolled' }, tell_soon)

on({ 'BufReadPost', 'BufNewFile', 'BufFilePost' }, function(event)
  vim.schedule(function()
    if not connection.is_registered or not api.nvim_buf_is_valid(event.buf) then return end
    local buffer = buffers.known[event.buf]
    if buffer and buffers.path_of(event.buf) ~= buffer.path then buffers.forget(buffer) end
    buffers.meet(event.buf)
  end)
end)

on('BufWritePost', function(event)
  local known, options = buffers.known[event.buf], vim.bo[event.buf]
  if not known then return end
  -- Neovim has put a line break at the end of the file and does not say so.
  if options.fixendofline and not options.endofline and not options.binary then options.endofline = true end
  local buffer = buffers.refresh(known)
  if not buffer then return end
  buffers.look_at_disk(buffer)
  buffer.mirrored = nil
  events.tell('file_saved', { path = buffer.path, version = buffer.version, digest = buffers.digest(buffer) })
end)

-- `:edit!` unloads too, and loads again at once.
on('BufUnload', function(event)
  vim.schedule(function()
    local buffer = buffers.known[event.buf]
    if buffer and not api.nvim_buf_is_loaded(event.buf) then buffers.forget(buffer) end
  end)
end)

on('BufEnter', function(event)
  local buffer = buffers.known[event.buf]
  if buffer then windows.switched(buffer, api.nvim_get_current_win()) end
end)

on('WinNew', function()
  local pane = api.nvim_get_current_win()
  if commands.session then return end
  vim.schedule(function()
    if not api.nvim_win_is_valid(pane) or not windows.is_plain(pane) then return end
    local buffer = buffers.known[api.nvim_win_get_buf(pane)]
    if buffer then windows.split(buffer, pane, vim.NIL) end
  end)
end)

on('DirChanged', function()
  if vim.g.prism_roots or vim.o.autochdir or vim.v.event.scope ~= 'global' then return end
  vim.schedule(function() if not vim.deep_equal(roots.wanted(), roots.open) then connection.reconnect() end end)
end)

-- Whether somebody looks at it is part of the registration.
on({ 'UIEnter', 'UILeave' }, function()
  vim.schedule(function()
    if connection.pipe and connection.ui ~= connection.has_ui() then connection.reconnect() end
  end)
end)

-- Keys that verbs and mappings press are not the person's.
vim.on_key(function(_, typed)
  if not commands.session and typed ~= '' then windows.typed_at = vim.uv.now() end
end, api.nvim_create_namespace('prism'))
