-- Verbs about code, which language servers answer.

local buffers, disk, language = require('prism.buffers'), require('prism.disk'), require('prism.language')
local position, refusal, roots = require('prism.position'), require('prism.refusal'), require('prism.roots')
local text, verb = require('prism.text'), require('prism.commands').verb

local wrong, quoted, uv, fn, NIL = refusal.wrong, refusal.quoted, vim.uv, vim.fn, vim.NIL
-- What one answer has at most. Of more it says that it is not complete.
local MAX_ERRORS, MAX_LOCATIONS, MAX_LENSES, MAX_RESOLVED = 5000, 1000, 500, 100

local function errors_of_all(ends)
  local all, is_complete, names = {}, true, {}
  for _, buffer in ipairs(buffers.all()) do
    local clients = language.clients(buffer)
    if #clients > 0 and #all <= MAX_ERRORS then
      local told, _, is_whole = language.errors(buffer, clients, ends)
      vim.list_extend(all, told)
      is_complete = is_complete and is_whole
      for _, client in ipairs(clients) do names[client.name] = true end
    end
  end
  return {
    diagnostics = vim.list_slice(all, 1, MAX_ERRORS), version = NIL, analyzed_version = NIL,
    is_complete = is_complete and next(names) ~= nil and #all <= MAX_ERRORS, server = vim.tbl_keys(names),
  }
end

verb('get_errors', { path = 'text?', wait_ms = { 0, 60000 } }, function(args)
  local ends = uv.now() + (args.wait_ms or 10000)
  if not args.path then return errors_of_all(ends) end
  local buffer = buffers.open(args.path)
  local told, analyzed, is_complete, servers = language.errors(buffer, language.attached(buffer), ends)
  local answer = { diagnostics = told, version = buffer.version, analyzed_version = analyzed or NIL }
  return vim.tbl_extend('error', answer, { is_complete = is_complete, server = servers[1] })
end)

-- Returns the name of a kind as agents know it; Neovim has it as in LSP's specification.
local function kind_name(kinds, kind)
  local name = kinds[kind]
  return name and name:gsub('(%l)(%u)', '%1_%2'):lower() or nil
end

-- Returns how well a word fits what was typed, the least best; nil if it does not.
local function rank_of(word, typed)
  if vim.startswith(word, typed) then return 0 end
  if word:find(typed, 1, true) then return 1 end
  local at = 1
  for letter in typed:gmatch('[%z\1-\127\194-\244][\128-\191]*') do
    at = word:find(letter, at, true)
    if not at then return nil end
    at = at + #letter
  end
  return 2
end

local function as_text(value)
  if type(value) == 'table' then value = value.value end
  return type(value) == 'string' and value or nil
end

local function told_completion(item)
  local documentation = as_text(item.documentation) or ''
  return {
    label = item.label, kind = kind_name(vim.lsp.protocol.CompletionItemKind, item.kind) or NIL,
    detail = as_text(item.detail) or as_text(vim.tbl_get(item, 'labelDetails', 'detail')) or NIL,
    insert_text = vim.tbl_get(item, 'textEdit', 'newText') or as_text(item.insertText) or item.label,
    documentation = documentation ~= '' and fn.strcharpart(documentation, 0, 1000) or nil,
  }
end

verb('get_completions', { path = 'text', position = 'position', limit = { 1, 500 } }, function(args)
  local buffer = buffers.open(args.path)
  local offset, why = position.offset(buffer.text, buffers.lines(buffer), args.position)
  if not offset then wrong(why) end
  local method, version, limit = 'textDocument/completion', buffer.version, args.limit or 50
  local client = language.client(buffer, method, 'complete code')
  local params = { textDocument = language.document(buffer), context = { triggerKind = 1 } }
  params.position = language.position(client, buffer, args.position)
  local answer = language.ask(client, buffer, method, params) or {}
  -- The word that stands before the place. Servers leave it to the editor to choose by it.
  local typed, fitting = fn.tolower(buffer.text:sub(1, offset):match('[%w_$\128-\255]*$')), {}
  for _, item in ipairs(answer.items or answer) do
    local rank = rank_of(fn.tolower(as_text(item.filterText) or item.label), typed)
    if rank then fitting[#fitting + 1] = { rank, as_text(item.sortText) or item.label, item = item } end
  end
  table.sort(fitting, text.comes_before)
  local told = vim.tbl_map(function(one) return told_completion(one.item) end, vim.list_slice(fitting, 1, limit))
  local is_complete = answer.isIncomplete ~= true and not language.busy_with(client) and #fitting <= limit
  return { items = told, is_complete = is_complete, version = version }
end)

-- By `kind`: the method, and what it is for.
local LOCATIONS = {
  definition = { 'textDocument/definition', 'find definitions' },
  declaration = { 'textDocument/declaration', 'find declarations' },
  type_definition = { 'textDocument/typeDefinition', 'find types' },
  implementation = { 'textDocument/implementation', 'find implementations' },
  references = { 'textDocument/references', 'find references' },
  symbols = { 'textDocument/documentSymbol', 'list symbols' },
}

-- Takes a Location, a LocationLink, a SymbolInformation or a DocumentSymbol into a list.
local function collect(found, item, path, container)
  local there = type(item.location) == 'table' and item.location or item
  local uri, range = there.uri or item.targetUri, item.targetSelectionRange or there.range
  if #found <= MAX_LOCATIONS and type(range) == 'table' then
    local one = { path = uri and vim.uri_to_fname(uri) or path, range = range, symbol = item.name and item }
    one.container = container or item.containerName
    found[#found + 1] = one
  end
  local children = type(item.children) == 'table' and item.children or {}
  for _, child in ipairs(children) do collect(found, child, path, item.name) end
end

-- Returns the text of a path, as it is in Neovim or on the disk; false if it lies outside of the folders.
local function text_at(path)
  local is_granted, real = pcall(roots.real, path)
  if not is_granted then return false end
  local known = buffers.at(real)
  local ok, whole = true, known and known.text
  if not known then ok, whole = pcall(disk.read, real) end
  whole = ok and text.is_text(whole) and whole or ''
  return { path = real, whole = whole, lines = position.lines(whole) }
end

-- Of what lies outside it is told where it is, and nothing of what stands there.
local function told_location(client, one, there)
  local told = { path = there and there.path or one.path, is_granted = there ~= false }
  told.range = language.told_range(client, one.range, there and there.whole, there and there.lines)
  local bounds = there and there.lines[told.range.start.line + 1]
  if bounds then told.line_text = fn.strcharpart(there.whole:sub(bounds[1] + 1, bounds[2]), 0, 300) end
  if one.symbol then
    told.name, told.kind = one.symbol.name, kind_name(vim.lsp.protocol.SymbolKind, one.symbol.kind) or 'symbol'
    told.container = (one.container and one.container ~= '') and one.container or NIL
  end
  return told
end

verb('goto_definition', { path = 'text', position = 'position?', kind = 'text?' }, function(args)
  local kind = args.kind or 'definition'
  local asked = LOCATIONS[kind]
  if not asked then
    local kinds = 'definition, declaration, type_definition, implementation, references or symbols'
    wrong('`kind` is %s, not %s', kinds, quoted(kind))
  end
  if not args.position and kind ~= 'symbols' then wrong('`position` is missing: {line, character}') end
  local buffer = buffers.open(args.path)
  local client = language.client(buffer, asked[1], asked[2])
  local params = { textDocument = language.document(buffer) }
  local there = args.position and language.position(client, buffer, args.position)
  if kind ~= 'symbols' then params.position = there end
  if kind == 'references' then params.context = { includeDeclaration = true } end
  local answer, found, texts = language.ask(client, buffer, asked[1], params) or {}, {}, {}
  local items = (answer.uri or answer.targetUri) and { answer } or answer
  for _, item in ipairs(items) do collect(found, item, buffer.path) end
  local locations = vim.tbl_map(function(one)
    if texts[one.path] == nil then texts[one.path] = text_at(one.path) end
    return told_location(client, one, texts[one.path])
  end, vim.list_slice(found, 1, MAX_LOCATIONS))
  return { locations = locations, is_complete = #found <= MAX_LOCATIONS and not language.busy_with(client) }
end)

verb('get_code_lens', { path = 'text' }, function(args)
  local buffer, method = buffers.open(args.path), 'textDocument/codeLens'
  local client = language.client(buffer, method, 'show code lenses')
  local version, ends = buffer.version, uv.now() + language.ANSWER_MS
  local lenses = language.ask(client, buffer, method, { textDocument = language.document(buffer) }) or {}
  local resolves = language.offers(client, buffer, 'codeLens/resolve')
  local told, resolved, is_complete = {}, 0, #lenses <= MAX_LENSES and not language.busy_with(client)
  for i, lens in ipairs(vim.list_slice(lenses, 1, MAX_LENSES)) do
    local command = lens.command
    if not command and resolves and resolved < MAX_RESOLVED and uv.now() < ends then
      resolved = resolved + 1
      command = (language.ask(client, buffer, 'codeLens/resolve', lens) or {}).command
    end
    is_complete = is_complete and command ~= nil
    local range = language.told_range(client, lens.range, buffer.text, buffers.lines(buffer))
    told[i] = { range = range, title = (command or {}).title or NIL, command = (command or {}).command or NIL }
  end
  return { lenses = told, version = version, is_complete = is_complete }
end)
