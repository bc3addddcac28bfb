-- The folders that are open, and whether a path lies in them. Neovim opens by name, so a path is looked at again right
-- before each use.

local refusal = require('prism.refusal')

local refuse, wrong, quoted, uv = refusal.refuse, refusal.wrong, refusal.quoted, vim.uv
-- `open` are the folders as they were registered.
local M = { open = {} }

function M.is_beneath(path, root) return path == root or root == '/' or vim.startswith(path, root .. '/') end

-- Returns the folders that are to be open: those of `g:prism_roots`, else the current one. The home folder and `/` hold
-- more than one is at work on, so they have to be named.
function M.wanted()
  local named, found = vim.g.prism_roots, {}
  for _, folder in ipairs(type(named) == 'table' and named or { uv.cwd() }) do
    local real = uv.fs_realpath(vim.fn.fnamemodify(folder, ':p'))
    local is_too_wide = not named and (real == '/' or real == uv.fs_realpath(uv.os_homedir() or '/'))
    if real and not is_too_wide then found[#found + 1] = real end
  end
  return found
end

function M.hold(path) return vim.iter(M.open):any(function(root) return M.is_beneath(path, root) end) end

-- Returns where a path really is, links resolved: of what is not there yet, its names below the nearest folder that is.
function M.real(path)
  if path:sub(1, 1) ~= '/' then wrong('%s is no absolute path', quoted(path)) end
  if path:find('\0', 1, true) then wrong('a path cannot hold a NUL') end
  local head, rest = path:gsub('/+$', ''), ''
  while head ~= '' do
    local real = uv.fs_realpath(head)
    if real then
      path = (real == '/' and '' or real) .. rest
      break
    end
    local folder, name = head:match('^(.*)/([^/]*)$')
    if name == '..' or name == '.' then refuse('not_found', '%s: there is no such folder', quoted(path)) end
    head, rest = folder, '/' .. name .. rest
  end
  if not M.hold(path) then refuse('outside_root', '%s is in none of the folders open in Neovim', quoted(path)) end
  return path
end

-- The same of a name, whatever a link by that name leads to.
function M.named(path)
  local folder, name = path:gsub('/+$', ''):match('^(.*)/([^/]+)$')
  if not name or name == '.' or name == '..' then wrong('%s names nothing in a folder', quoted(path)) end
  local real = M.real(folder == '' and '/' or folder)
  return (real == '/' and '' or real) .. '/' .. name
end

return M
