-- Verbs about files.

local arguments, buffers, disk = require('prism.arguments'), require('prism.buffers'), require('prism.disk')
local edits, refusal, roots = require('prism.edits'), require('prism.refusal'), require('prism.roots')
local text, verb = require('prism.text'), require('prism.commands').verb

local refuse, wrong, quoted, uv = refusal.refuse, refusal.wrong, refusal.quoted, vim.uv

-- Returns some lines of a text, and whether that is all of it.
local function part_of(whole, offset, limit)
  local first = 1
  for _ = 1, offset do first = (whole:find('\n', first, true) or #whole) + 1 end
  local last = first - 1
  for _ = 1, math.min(limit or 2 ^ 32, text.count_lines(whole)) do last = whole:find('\n', last + 1, true) or #whole end
  return whole:sub(first, last), offset == 0 and last == #whole
end

local OPEN_FILE = { path = 'text', offset = arguments.LINE, limit = arguments.COUNT }

verb('open_file', OPEN_FILE, function(args)
  local buffer, bytes, real = buffers.find(args.path)
  if not buffer then
    return {
      path = real, bytes = #bytes, digest = text.digest(bytes), encoding = 'base64',
      content = vim.base64.encode(bytes), version = vim.NIL, is_dirty = false, language = vim.NIL,
    }
  end
  local answer = {
    path = buffer.path, bytes = #buffer.text, digest = buffers.digest(buffer), encoding = 'utf-8',
    lines = text.count_lines(buffer.text), version = buffer.version, is_dirty = buffers.is_dirty(buffer),
    language = buffers.language(buffer), content = buffer.text,
  }
  if args.limit or (args.offset or 0) > 0 then
    local is_all
    answer.offset = args.offset or 0
    answer.content, is_all = part_of(buffer.text, answer.offset, args.limit)
    answer.is_partial = not is_all
  end
  return answer
end)

local function make_folder_of(path, makes_parents)
  local folder = vim.fs.dirname(path)
  if uv.fs_stat(folder) then return end
  if not makes_parents then refuse('not_found', '%s: its folder is not there; `parents` makes it', quoted(path)) end
  local ok, why = pcall(vim.fn.mkdir, folder, 'p')
  if not ok then refuse('failed', '%s cannot be made: %s', quoted(folder), tostring(why)) end
end

local CREATE_FILE = { path = 'text', content = 'text?', encoding = 'text?', parents = 'flag', kind = 'text?' }

verb('create_file', CREATE_FILE, function(args)
  local content = arguments.bytes(args.content, args.encoding)
  local is_folder = args.kind == 'folder'
  local is_kind = is_folder or (args.kind or 'file') == 'file'
  if not is_kind then wrong('`kind` is "file" or "folder", not %s', quoted(args.kind)) end
  if is_folder and content then wrong('a folder has no `content`') end
  local path = roots.named(args.path)
  local function refuse_taken() wrong('%s: it is already there; write_file and edit_buffer change it', quoted(path)) end
  if uv.fs_lstat(path) then refuse_taken() end
  make_folder_of(path, args.parents)
  if is_folder then
    local made, why, name = uv.fs_mkdir(path, 493)
    if not made then disk.fail(path, why, name) end
    return { path = path }
  end
  content = content or ''
  disk.check_size(content)
  local made, why, name = disk.create(path, content)
  if name == 'EEXIST' then refuse_taken() end
  if not made then disk.fail(path, why, name) end
  return { path = path, bytes = #content, digest = text.digest(content) }
end)

verb('write_file', { path = 'text', content = 'text', encoding = 'text?', digest = 'text?' }, function(args)
  local content = arguments.bytes(args.content, args.encoding)
  disk.check_size(content)
  local path = roots.real(args.path)
  edits.refuse_dirty(path)
  local bytes, stat = disk.read(path)
  if args.digest and args.digest ~= text.digest(bytes) then
    refuse('changed', '%s: it is not the file that the change was made for; look again, then try again', quoted(path))
  end
  disk.replace(path, content, stat)
  local buffer = buffers.at(path)
  if buffer and text.is_text(content) then
    buffers.reload(buffer, 'edit')
  elseif buffer then
    buffers.close(buffer)
  end
  return { path = path, bytes = #content, digest = text.digest(content) }
end)

local KINDS = { file = 'file', directory = 'folder', link = 'link' }

verb('delete_file', { path = 'text' }, function(args)
  local path = roots.named(args.path)
  local stat = uv.fs_lstat(path) or disk.not_found(path)
  edits.refuse_dirty(path)
  local remove = stat.type == 'directory' and uv.fs_rmdir or uv.fs_unlink
  local gone, why, name = remove(path)
  if name == 'ENOTEMPTY' or name == 'EEXIST' then wrong('%s: delete what is in the folder first', quoted(path)) end
  if not gone then disk.fail(path, why, name) end
  edits.removed(path)
  return { path = path, what = KINDS[stat.type] or 'special' }
end)

verb('rename_file', { path = 'text', new_path = 'text', overwrite = 'flag' }, function(args)
  local path, new_path = roots.named(args.path), roots.named(args.new_path)
  if not uv.fs_lstat(path) then disk.not_found(path) end
  if not args.overwrite and uv.fs_lstat(new_path) then
    wrong('%s is there; `overwrite` replaces it', quoted(new_path))
  end
  -- What the new name held is lost, and with it no text that somebody has not saved.
  edits.refuse_dirty(new_path)
  local made, why, name = uv.fs_rename(path, new_path)
  if not made then disk.fail(new_path, why, name) end
  edits.removed(new_path)
  edits.renamed(path, new_path)
  return { path = path, new_path = new_path }
end)
