-- Verbs by which language servers change code. What they propose is planned on the texts that they were asked about.

local arguments, buffers, commands = require('prism.arguments'), require('prism.buffers'), require('prism.commands')
local edits, language, position = require('prism.edits'), require('prism.language'), require('prism.position')
local refusal = require('prism.refusal')

local refuse, wrong, quoted, verb, fn = refusal.refuse, refusal.wrong, refusal.quoted, commands.verb, vim.fn
-- Edits that one command makes, and fixes that one answer has.
local MAX_EDITS, MAX_FIXES = 20000, 200

-- Returns what a WorkspaceEdit wants with each file: edits by URI, and the URIs in order.
local function wanted_by(edit)
  local wanted, uris, count = {}, {}, 0
  local function want(uri, listed)
    local why = type(uri) ~= 'string' and 'names no file'
      or not vim.startswith(uri, 'file:') and 'wants to change something that is no file'
      or type(listed) ~= 'table' and 'has named a file and no edits'
      or wanted[uri] and 'wants to change a file twice in a row'
    if why then refuse('failed', 'the language server %s; nothing was changed', why) end
    wanted[uri], uris[#uris + 1], count = listed, uri, count + #listed
  end
  -- LSP 3.17, WorkspaceEdit: where both are there, the document changes are meant.
  local is_by_document = type(edit.documentChanges) == 'table'
  for _, step in ipairs(is_by_document and edit.documentChanges or {}) do
    if step.kind then
      local why = 'the change would also %s a file, which is not done along with edits; do that with create_file, '
      refuse('unsupported', why .. 'rename_file or delete_file', step.kind)
    end
    want(step.textDocument.uri, step.edits)
  end
  local changes = not is_by_document and type(edit.changes) == 'table' and edit.changes or {}
  for uri, listed in pairs(changes) do want(uri, listed) end
  if #uris > edits.MAX_FILES or count > MAX_EDITS then
    local why = 'the change would make %d edits in %d files; at most %d in %d are made'
    refuse('too_large', why, count, #uris, MAX_EDITS, edits.MAX_FILES)
  end
  table.sort(uris)
  return wanted, uris
end

-- Returns a server's edits of a text, in bytes.
local function placed(client, buffer, listed)
  local lines = buffers.lines(buffer)
  local function offset_of(there)
    -- Beyond the last line is the end, as servers say "all of it".
    if there.line >= #lines then return #buffer.text end
    return position.offset(buffer.text, lines, there, client.offset_encoding)
  end
  return vim.tbl_map(function(edit)
    if edit.insertTextFormat == 2 then refuse('failed', 'the server wants to insert a template; nothing is changed') end
    local first, last = offset_of(edit.range.start), offset_of(edit.range['end'])
    if not first or not last or first > last then
      refuse('failed', 'the language server has named a place that is not in the text; nothing was changed')
    end
    return { first = first, last = last, new_text = edit.newText }
  end, listed)
end

-- Returns the versions of all texts that servers have from us, by path.
local function versions_now()
  local versions = {}
  for _, buffer in ipairs(buffers.all()) do versions[buffer.path] = buffer.version end
  return versions
end

-- Returns the plans that a WorkspaceEdit means: all of it or nothing. `before` are the versions when the server was
-- asked; a text that it has read from the disk itself must be clean.
local function plans_of(client, edit, before)
  local wanted, uris = wanted_by(edit)
  local plans = {}
  for _, uri in ipairs(uris) do
    local path = vim.uri_to_fname(uri)
    local ok, buffer = pcall(buffers.open, path)
    if not ok then
      local why = buffer.message or tostring(buffer)
      local told = 'the change would also touch %s: %s; nothing was changed'
      refuse(buffer.code or 'failed', told, quoted(path), why)
    end
    local known = before[buffer.path]
    local is_other = known and known ~= buffer.version or not known and buffers.is_dirty(buffer)
    if is_other then edits.refuse_stale(buffer) end
    local found = placed(client, buffer, wanted[uri])
    if #found > 0 then plans[#plans + 1] = edits.plan(buffer, found) end
  end
  return plans
end

local function make(plans, is_preview, reason)
  if is_preview then
    local files, diff = edits.preview(plans, 'edits')
    return { files = files, diff = diff, is_preview = true }
  end
  edits.make(plans, reason)
  return { files = vim.tbl_map(edits.told, plans), is_preview = false }
end

local function open(args)
  local buffer = buffers.open(args.path)
  if args.version and args.version ~= buffer.version then edits.refuse_stale(buffer) end
  return buffer
end

local FORMAT_CODE =
  { path = 'text', version = arguments.VERSION, range = 'range?', tab_size = { 1, 16 }, insert_spaces = 'flag?' }

verb('format_code', FORMAT_CODE, function(args)
  local buffer = open(args)
  local method, what = 'textDocument/formatting', 'format code'
  if args.range then method, what = 'textDocument/rangeFormatting', 'format a part of a file; leave out `range`' end
  local client = language.client(buffer, method, what)
  local params = { textDocument = language.document(buffer) }
  params.options = { tabSize = args.tab_size or 4, insertSpaces = args.insert_spaces ~= false }
  params.range = args.range and language.range(client, buffer, args.range)
  local before = versions_now()
  local listed = language.ask(client, buffer, method, params) or {}
  local plan = plans_of(client, { changes = { [params.textDocument.uri] = listed } }, before)[1]
  if not plan then return { path = buffer.path, version = buffer.version, edits = 0, is_changed = false } end
  edits.make({ plan }, 'format')
  return vim.tbl_extend('error', edits.told(plan), { is_changed = true })
end)

local REFACTOR_SYMBOL =
  { path = 'text', position = 'position', new_name = 'text', version = arguments.VERSION, preview = 'flag' }

verb('refactor_symbol', REFACTOR_SYMBOL, function(args)
  local name, nothing = args.new_name, 'there is nothing at `position` that could be renamed'
  if not name:find('%S') or name:find('%c') or fn.strchars(name) > 200 then wrong('`new_name` has 1 to 200 letters') end
  local buffer = open(args)
  local client = language.client(buffer, 'textDocument/rename', 'rename symbols')
  local params = { textDocument = language.document(buffer) }
  params.position = language.position(client, buffer, args.position)
  local method = 'textDocument/prepareRename'
  local prepares = language.offers(client, buffer, method)
  if prepares and not language.ask(client, buffer, method, params) then wrong(nothing) end
  -- Half of the uses would keep the old name.
  local function is_ready() return not language.busy_with(client) end
  if not commands.await_so(language.ANSWER_MS, is_ready) then
    refusal.refuse_for(2000, 'timed_out', client.name .. ' is still loading the project; try again in a moment')
  end
  local before = versions_now()
  params.newName = name
  local edit = language.ask(client, buffer, 'textDocument/rename', params) or wrong(nothing)
  return make(plans_of(client, edit, before), args.preview, 'rename')
end)

-- Returns what of the errors, as the server has said them, lies in a range: some only have fixes for those.
local function errors_in(client, buffer, range)
  local told, _, _, _, raw = language.errors(buffer, { client }, vim.uv.now() + language.ANSWER_MS / 2)
  local function is_behind(a, b) return a.line > b.line or (a.line == b.line and a.character > b.character) end
  local function is_apart(a, b) return is_behind(a.start, b['end']) or is_behind(b.start, a['end']) end
  local near = vim.iter(ipairs(told)):filter(function(_, item) return not is_apart(item.range, range) end)
  return near:map(function(i) return raw[i] end):totable()
end

-- Returns the edit of a code action, asked for if the server has not told it yet.
local function edit_of(client, buffer, action)
  -- A Command's `command` is a string, a CodeAction's is a table.
  local resolves = type(action.command) ~= 'string' and language.offers(client, buffer, 'codeAction/resolve')
  local edit = action.edit
  if not edit and resolves then edit = (language.ask(client, buffer, 'codeAction/resolve', action) or {}).edit end
  local why = 'the quick fix %s runs a command of the language server %s; only fixes that are edits can be applied'
  return edit or refuse('unsupported', why, quoted(action.title), client.name)
end

local APPLY_QUICK_FIX =
  { path = 'text', range = 'range', title = 'text?', version = arguments.VERSION, preview = 'flag' }

verb('apply_quick_fix', APPLY_QUICK_FIX, function(args)
  local buffer, method = open(args), 'textDocument/codeAction'
  local client = language.client(buffer, method, 'offer quick fixes')
  local params = { textDocument = language.document(buffer), range = language.range(client, buffer, args.range) }
  params.context = { diagnostics = errors_in(client, buffer, args.range), triggerKind = 1 }
  local before = versions_now()
  local offered = vim.tbl_filter(function(action) return action.disabled == nil end,
    language.ask(client, buffer, method, params) or {})
  if not args.title then
    local fixes = vim.tbl_map(function(action)
      return { title = action.title, kind = action.kind or vim.NIL, is_preferred = action.isPreferred == true }
    end, vim.list_slice(offered, 1, MAX_FIXES))
    return { fixes = fixes, is_complete = #offered <= MAX_FIXES and not language.busy_with(client) }
  end
  local chosen = vim.iter(offered):find(function(action) return action.title == args.title end)
  if not chosen then
    local titles = vim.tbl_map(function(action) return quoted(action.title) end, vim.list_slice(offered, 1, 10))
    local told = #titles == 0 and 'nothing is offered' or table.concat(titles, ', ')
    refuse('not_found', 'no quick fix %s is offered there by now; %s', quoted(args.title), told)
  end
  return make(plans_of(client, edit_of(client, buffer, chosen), before), args.preview, 'quick_fix')
end)
