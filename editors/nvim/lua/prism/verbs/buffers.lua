-- Verbs about open texts.

local arguments, buffers = require('prism.arguments'), require('prism.buffers')
local connection, edits, position = require('prism.connection'), require('prism.edits'), require('prism.position')
local refusal, roots, text = require('prism.refusal'), require('prism.roots'), require('prism.text')
local verb = require('prism.commands').verb

local refuse, wrong, about, quoted = refusal.refuse, refusal.wrong, refusal.about, refusal.quoted
-- Edits of one command; more is refused.
local MAX_EDITS = 1000

verb('get_buffers', {}, function()
  local listed, active = {}, vim.api.nvim_get_current_buf()
  for _, known in ipairs(buffers.all()) do
    local buffer = buffers.refresh(known)
    if buffer then
      buffers.follow(buffer)
      listed[#listed + 1] = {
        path = buffer.path, version = buffer.version, is_dirty = buffers.is_dirty(buffer),
        digest = buffers.digest(buffer), language = buffers.language(buffer), lines = text.count_lines(buffer.text),
        is_changed_on_disk = buffer.is_other == true, is_active = buffer.bufnr == active,
      }
    end
  end
  return { buffers = listed, ui = connection.has_ui() }
end)

-- Returns the text that an order is for: refused if that is another by now.
local function open(args)
  local buffer = buffers.open(args.path)
  local is_other = args.version and args.version ~= buffer.version
  if is_other or (args.digest and args.digest ~= buffers.digest(buffer)) then edits.refuse_stale(buffer) end
  return buffer
end

local function read_edit(given)
  local edit = arguments.read(given, { range = 'range?', old_text = 'text?', new_text = 'text' })
  if not edit.range and not edit.old_text then wrong('it needs a `range` or an `old_text`') end
  if not edit.range and edit.old_text == '' then wrong('`old_text` is empty') end
  return edit
end

-- Returns the edits of some arguments: those of `edits`, or the one of `old_text` and `new_text`, or nil.
local function read_edits(args)
  local listed = args.edits
  if not listed and args.old_text == nil and args.new_text == nil then return nil end
  if listed and (args.old_text ~= nil or args.new_text ~= nil) then wrong('give `edits` or `old_text`, not both') end
  listed = listed or { { old_text = args.old_text, new_text = args.new_text } }
  if #listed < 1 or #listed > MAX_EDITS then wrong('`edits` must hold 1 to %d edits, not %d', MAX_EDITS, #listed) end
  local found = {}
  for i, edit in ipairs(listed) do
    if type(edit) ~= 'table' then wrong('edit %d must be an object', i - 1) end
    found[i] = about(('edit %d'):format(i - 1), read_edit, edit)
  end
  return found
end

-- Returns where an edit is in a text, in bytes.
local function placed(buffer, edit)
  local whole, lines, range = buffer.text, buffers.lines(buffer), edit.range
  if range then
    local first, why = position.offset(whole, lines, range.start)
    local last, why_not = position.offset(whole, lines, range['end'])
    if not first or not last then wrong(why or why_not) end
    if first > last then wrong('`range` ends before it starts') end
    if edit.old_text and whole:sub(first + 1, last) ~= edit.old_text then wrong('`old_text` is not in `range`') end
    return { first = first, last = last, new_text = edit.new_text }
  end
  local at = whole:find(edit.old_text, 1, true) or wrong('`old_text` is not in the text; open it again')
  -- It may overlap with itself, too.
  if whole:find(edit.old_text, at + 1, true) then wrong('`old_text` is there more than once; give more of it') end
  return { first = at - 1, last = at - 1 + #edit.old_text, new_text = edit.new_text }
end

-- Plans the edits of some arguments.
local function plan(args, given)
  local buffer, names_version = open(args), args.version ~= nil or args.digest ~= nil
  local found = {}
  for i, edit in ipairs(given) do
    if edit.range and not edit.old_text and not names_version then
      wrong('a `range` is about one version of the text: give its `version` or `digest`, or the `old_text` there')
    end
    found[i] = about(('edit %d'):format(i - 1), placed, buffer, edit)
  end
  return edits.plan(buffer, found)
end

local FILE =
  { path = 'text', version = arguments.VERSION, digest = 'text?', edits = 'array?', old_text = 'text?', new_text = 'text?' }

local function edit_files(files)
  if #files < 1 or #files > edits.MAX_FILES then wrong('`files` must hold 1 to %d, not %d', edits.MAX_FILES, #files) end
  local plans, seen = {}, {}
  for i, file in ipairs(files) do
    plans[i] = about(('file %d'):format(i - 1), function()
      if type(file) ~= 'table' then wrong('it must be an object') end
      local args = arguments.read(file, FILE)
      return plan(args, read_edits(args) or wrong('`edits` is missing'))
    end)
    local path = plans[i].buffer.path
    if seen[path] then wrong('%s is named twice', quoted(path)) end
    seen[path] = true
  end
  edits.make(plans, 'edit')
  return { files = vim.tbl_map(edits.told, plans) }
end

local ONE = vim.tbl_extend('error', FILE, { undo = { 1, MAX_EDITS }, redo = { 1, MAX_EDITS } })

local function edit_one(given)
  local args = arguments.read(given, ONE)
  local wanted = read_edits(args)
  local count = (args.undo and 1 or 0) + (args.redo and 1 or 0) + (wanted and 1 or 0)
  if count == 0 then wrong('`edits` is missing: {range, new_text} or {old_text, new_text}; or `undo`, or `redo`') end
  if count > 1 then wrong('give one of `edits`, `undo` and `redo`') end
  if wanted then
    local planned = plan(args, wanted)
    edits.make({ planned }, 'edit')
    return edits.told(planned)
  end
  local buffer = open(args)
  edits.retrace(buffer, args.undo or args.redo, args.undo ~= nil)
  return edits.told({ buffer = buffer, edits = { true } })
end

require('prism.commands').verbs.edit_buffer = function(given)
  if given.files == nil then return edit_one(given) end
  return edit_files(arguments.read(given, { files = 'array' }).files)
end

local function save_all(overwrites)
  local saved = {}
  for _, buffer in ipairs(vim.tbl_filter(buffers.is_dirty, buffers.all())) do
    local ok, told = pcall(edits.save, buffer, overwrites)
    local why = not ok and { code = told.code or 'failed', message = told.message or told }
    saved[#saved + 1] = ok and told or { path = buffer.path, error = why }
  end
  return { saved = saved }
end

local SAVE_BUFFER = { path = 'text?', all = 'flag', version = arguments.VERSION, overwrite = 'flag' }

verb('save_buffer', SAVE_BUFFER, function(args)
  if (args.path ~= nil) == args.all or (args.all and args.version) then wrong('give `path`, or `all`: true') end
  if args.all then return save_all(args.overwrite) end
  local buffer, version = buffers.open(args.path), args.version
  if version and version ~= buffer.version then
    refuse('changed', '%s: version %d was to be saved, and it is at %d', quoted(args.path), version, buffer.version)
  end
  return edits.save(buffer, args.overwrite)
end)

verb('close_buffer', { path = 'text', discard = 'flag' }, function(args)
  local buffer = buffers.at(roots.real(args.path)) or refuse('not_found', '%s is not open', quoted(args.path))
  local was_dirty = buffers.is_dirty(buffer)
  if was_dirty and not args.discard then edits.refuse_dirty(buffer.path) end
  buffers.close(buffer)
  return { path = buffer.path, discarded = was_dirty }
end)
