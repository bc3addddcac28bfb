-- Files on the disk: read whole, made anew, or replaced at once.

local refusal, text = require('prism.refusal'), require('prism.text')

local refuse, wrong, quoted, uv = refusal.refuse, refusal.wrong, refusal.quoted, vim.uv
local M = {}

-- Returns what a file is known again by: another stamp, another content.
function M.stamp(stat) return stat and table.concat({ stat.mtime.sec, stat.mtime.nsec, stat.size, stat.ino }, ' ') end

function M.permissions(stat) return stat.mode % 4096 end

local CODES =
  { ENOENT = 'not_found', ENOTDIR = 'bad_arguments', EEXIST = 'bad_arguments', ENOTEMPTY = 'bad_arguments' }

-- Ends the command with what the system says.
function M.fail(path, why, name)
  local told = tostring(why):gsub('^%u+: ', ''):gsub(': /.*$', '')
  refuse(CODES[name] or 'failed', '%s: %s', quoted(path), told)
end

function M.not_found(path) refuse('not_found', 'there is no file %s', quoted(path)) end

-- Returns all of a file that is there, and its stat.
function M.read(path)
  local stat = uv.fs_stat(path) or M.not_found(path)
  if stat.type ~= 'file' then wrong('%s is no file but a %s', quoted(path), stat.type) end
  if stat.size > text.MAX_BYTES then
    refuse('too_large', '%s has more than %d bytes; read a part of it with a command', quoted(path), text.MAX_BYTES)
  end
  local handle, why, name = uv.fs_open(path, 'r', 0)
  if not handle then M.fail(path, why, name) end
  local bytes = uv.fs_read(handle, text.MAX_BYTES + 1, 0)
  uv.fs_close(handle)
  return bytes or refuse('failed', '%s cannot be read', quoted(path)), stat
end

-- Writes a file that is not there yet. Returns nil, why and the error's name if it cannot be.
function M.create(path, bytes, mode)
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
function M.replace(path, bytes, stat)
  if not uv.fs_access(path, 'W') then refuse('failed', '%s is read-only', quoted(path)) end
  local beside = ('%s.prism-%d-%d'):format(path, uv.os_getpid(), uv.hrtime() % 1e9)
  local made, why, name = M.create(beside, bytes, M.permissions(stat))
  if not made then M.fail(path, why, name) end
  uv.fs_chmod(beside, M.permissions(stat))
  made, why, name = uv.fs_rename(beside, path)
  if made then return end
  uv.fs_unlink(beside)
  M.fail(path, why, name)
end

function M.check_size(bytes)
  if #bytes <= text.MAX_BYTES then return end
  refuse('too_large', 'a file of %d bytes; at most %d can be written', #bytes, text.MAX_BYTES)
end

return M
