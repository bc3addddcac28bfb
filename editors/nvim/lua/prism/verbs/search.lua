-- Verbs that search: they see texts as they are in Neovim where they are open, and files elsewhere.

local arguments, buffers, commands = require('prism.arguments'), require('prism.buffers'), require('prism.commands')
local disk, edits, position = require('prism.disk'), require('prism.edits'), require('prism.position')
local refusal, roots, text = require('prism.refusal'), require('prism.roots'), require('prism.text')

local refuse, wrong, verb, fn, lpeg = refusal.refuse, refusal.wrong, commands.verb, vim.fn, vim.lpeg
local LIMIT, USUAL_LIMIT = { 1, 10000 }, 1000
-- Files that are gone through for one command. Of more, the answer says that it is not complete.
local MAX_WALKED = 50000

-- Rust's expressions, which agents write, as Vim's (`\v`). What is not the same in both is refused, so that no match is
-- another than the built-in editor's.
local SETS = { d = '0-9', w = '0-9A-Za-z_', s = ' \t\11\12\r' }
local ESCAPES = { t = '\t', r = '\r', f = '\12', v = '\11', a = '\7' }
local function set(letter) return ('[%s%s]'):format(letter:match('%u') and '^' or '', SETS[letter:lower()]) end
local function refuse_piece(piece) refuse('unsupported', 'Neovim has no %s as in `pattern`; use `text`', piece) end
local P, S, C, Cs = lpeg.P, lpeg.S, lpeg.C, lpeg.Cs
local backslash, punctuation = P('\\'), lpeg.R('!/', ':@', '[`', '{~')
local letter = backslash * C(S('trfva')) / ESCAPES
local class_item = backslash * C(S('dws')) / SETS + letter + backslash * punctuation
  + (S('[\\') + '&&' + '--') / refuse_piece + (1 - P(']'))
local count = Cs(lpeg.R('09') ^ 1 * (',' * lpeg.R('09') ^ 0) ^ -1)
local piece = backslash * C(S('dwsDWS')) / set + letter + P('\\b') / '%%(<|>)' + backslash * punctuation
  + '[' * P('^') ^ -1 * (P(']') / '\\]') ^ -1 * Cs(class_item ^ 0) * ']' + P('(?:') / '%%('
  + P('*?') / '{-}' + P('+?') / '{-1,}' + P('??') / '{-0,1}' + '{' * count * '}?' / '{-%1}' + '{' * count * '}'
  + (P('(?') + backslash) / refuse_piece + P('^') / '_^' + S('~=@&%<>') / '\\%0' + 1
local expression = Cs(piece ^ 0)

local M = {}

function M.vim_pattern(pattern) return '\\v' .. expression:match(pattern) end

-- Returns a function that finds the first match in a line from a byte on: its start, its end and its groups.
local function finder(args)
  local words, pattern = args.text, args.pattern
  if not words == not pattern then wrong('give `text`, or `pattern`, an expression') end
  if words and (words == '' or words:find('[\r\n]')) then wrong('`text` must be a part of one line') end
  if pattern == '' then wrong('`pattern` is empty') end
  if words and not args.ignore_case then
    return function(line, from)
      local first, last = line:find(words, from + 1, true)
      return first and first - 1, last
    end
  end
  local vims = words and '\\V' .. words:gsub('\\', '\\\\') or M.vim_pattern(pattern)
  vims = '\\%#=2' .. (args.ignore_case and '\\c' or '\\C') .. vims
  local ok, why = pcall(fn.match, '', vims)
  if not ok then wrong('`pattern` is no expression that can be looked for: %s', tostring(why)) end
  local asks_for_letters = pattern and pattern:find('\\[dwsbDWSB]')
  return function(line, from)
    if asks_for_letters and line:find('[\128-\255]') then
      refuse('unsupported', 'Neovim tells letters of other scripts apart in another way than `pattern`; use `text`')
    end
    local found = fn.matchstrpos(line, vims, from, 1)
    if found[2] < 0 then return nil end
    return found[2], found[3], pattern and fn.matchlist(line, vims, from, 1) or nil
  end
end

-- Finds all in a text, from left to right, where they do not overlap. `found` says whether to go on.
local function each_match(whole, find, found)
  for i, bounds in ipairs(position.lines(whole)) do
    local line, from = whole:sub(bounds[1] + 1, bounds[2]), 0
    while from <= #line do
      local first, last, groups = find(line, from)
      if not first then break end
      local match = { row = i - 1, begin = bounds[1], line = line, first = first, last = last, groups = groups }
      if not found(match) then return false end
      from = last > first and last or last + 1
    end
  end
  return true
end

local function told_match(match)
  local function told(byte) return { line = match.row, character = position.to_units(match.line, byte) } end
  return { range = { start = told(match.first), ['end'] = told(match.last) }, line_text = match.line }
end

verb('find_in_file', { path = 'text', text = 'text', ignore_case = 'flag', limit = LIMIT }, function(args)
  local find, matches = finder(args), {}
  local buffer = buffers.find(args.path) or wrong('it is no text')
  local is_complete = each_match(buffer.text, find, function(match)
    local fits = #matches < (args.limit or USUAL_LIMIT)
    if fits then matches[#matches + 1] = told_match(match) end
    return fits
  end)
  local told = { path = buffer.path, version = buffer.version, digest = buffers.digest(buffer) }
  return vim.tbl_extend('error', told, { matches = matches, is_complete = is_complete })
end)

-- Returns a function that says whether a path beneath the folder is meant. Without a slash a glob is about the name.
function M.glob_of(glob)
  if not glob then return function() return true end end
  if glob == '' or #glob > 1024 then wrong('`glob` must have 1 to 1024 bytes') end
  if vim.startswith(glob, '/') or ('/' .. glob .. '/'):find('/../', 1, true) then
    wrong('`glob` is about names beneath `path`; it cannot lead out of it')
  end
  if glob:find('[', 1, true) and fn.has('nvim-0.12') == 0 then refuse('unsupported', 'Neovim before 0.12 has no sets') end
  local ok, pattern = pcall(vim.glob.to_lpeg, glob)
  if not ok then wrong('`glob` is none: %s', tostring(pattern)) end
  return function(path) return pattern:match(glob:find('/') and path or vim.fs.basename(path)) ~= nil end
end

-- Returns the files beneath a folder, without what is hidden and what git ignores, unless `args` want these; and whether
-- that is all. Git is asked in a way that runs nothing of the repository's: neither a monitor nor a hook.
local function files_beneath(folder, args)
  local names, is_hidden = nil, function(name) return not args.hidden and ('/' .. name):find('/.', 1, true) end
  if vim.fs.root(folder, '.git') and not args.ignored and fn.executable('git') == 1 then
    local git = { 'git', '-c', 'core.fsmonitor=false', '-c', 'core.hooksPath=/dev/null', 'ls-files', '-z' }
    vim.list_extend(git, { '--cached', '--others', '--exclude-standard', '--deduplicate' })
    local told = commands.await(function(resume)
      local process = vim.system(git, { cwd = folder }, resume)
      return function() process:kill('sigkill') end
    end)
    names = told.code == 0 and vim.split(told.stdout, '\0', { plain = true, trimempty = true }) or nil
  end
  -- Links are not followed.
  local function descends(name) return name ~= '.git' and not is_hidden(name) end
  if not names then
    names = vim.iter(vim.fs.dir(folder, { depth = math.huge, skip = descends }))
    names = names:filter(function(_, kind) return kind == 'file' end):take(MAX_WALKED + 1):totable()
    names = vim.tbl_map(function(entry) return entry[1] end, names)
  end
  names = vim.tbl_filter(function(name) return not is_hidden(name) end, names)
  return vim.list_slice(names, 1, MAX_WALKED), #names <= MAX_WALKED
end

-- Goes through the texts of a file or of a folder. `visit` says whether to go on. Returns whether all of them were seen.
local function each_text(args, visit)
  local path, fits = roots.real(args.path), M.glob_of(args.glob)
  local stat = vim.uv.fs_stat(path)
  if not stat and not buffers.at(path) then disk.not_found(path) end
  local paths, is_complete = { path }, true
  if stat and stat.type == 'directory' then
    local names
    names, is_complete = files_beneath(path, args)
    paths = vim.tbl_map(function(name) return vim.fs.joinpath(path, name) end, vim.tbl_filter(fits, names))
    -- Unsaved text whose file is not there is met by no walk.
    for _, buffer in ipairs(buffers.all()) do
      local is_beneath = roots.is_beneath(buffer.path, path) and fits(buffer.path:sub(#path + 2))
      if is_beneath and not vim.uv.fs_stat(buffer.path) then paths[#paths + 1] = buffer.path end
    end
  end
  local since = vim.uv.hrtime()
  for _, candidate in ipairs(paths) do
    local buffer = buffers.at(candidate)
    if buffer then buffers.follow(buffer) end
    buffer = buffers.at(candidate)
    local ok, whole = true, buffer and buffer.text
    if not buffer then ok, whole = pcall(disk.read, candidate) end
    if ok and text.is_text(whole) and not visit(candidate, whole) then return false end
    is_complete = is_complete and (ok or not vim.uv.fs_stat(candidate))
    -- The person's editor is not to stand still meanwhile.
    if vim.uv.hrtime() - since > 10e6 then
      commands.rest(0)
      since = vim.uv.hrtime()
    end
  end
  return is_complete
end

local function is_within_a_word(match)
  local function is_part(at) return match.line:sub(at, at):find('[%w_\128-\255]') end
  return is_part(match.first) or is_part(match.last + 1)
end

local FIND_IN_PROJECT = {
  path = 'text', text = 'text', glob = 'text?', ignore_case = 'flag', word = 'flag', hidden = 'flag',
  ignored = 'flag', limit = LIMIT,
}

verb('find_in_project', FIND_IN_PROJECT, function(args)
  local find, matches, files, limit = finder(args), {}, 0, args.limit or USUAL_LIMIT
  local is_complete = each_text(args, function(path, whole)
    local before = #matches
    local is_all = each_match(whole, find, function(match)
      if args.word and is_within_a_word(match) then return true end
      if #matches >= limit then return false end
      matches[#matches + 1] = vim.tbl_extend('error', told_match(match), { path = path })
      return true
    end)
    if #matches > before then files = files + 1 end
    return is_all
  end)
  return { matches = matches, files = files, is_complete = is_complete }
end)

-- Puts the groups of a match into a template: `$1`, `${1}`; `$$` is a dollar.
local function filled(template, groups)
  return (template:gsub('%$(%$?)({?)(%w*)(}?)', function(dollar, open, number, close)
    if dollar == '$' then return '$' .. open .. number .. close end
    return (groups[(tonumber(number) or 99) + 1] or '') .. (open == '' and close or '')
  end))
end

local function refuse_many(why) refuse('too_large', why .. '; `path` and `glob` narrow it down. Nothing was changed') end

local REPLACE_TEXT = {
  path = 'text', text = 'text?', pattern = 'text?', new_text = 'text', glob = 'text?', ignore_case = 'flag',
  preview = 'flag', limit = LIMIT,
}

verb('replace_text', REPLACE_TEXT, function(args)
  local find, hits, limit = finder(args), {}, args.limit or USUAL_LIMIT
  -- Only files that hold it become buffers.
  local is_complete = each_text(args, function(path, whole)
    local is_hit = not each_match(whole, find, function() return false end)
    if is_hit then hits[#hits + 1] = path end
    return true
  end)
  local many = ('it stands in %d files; at most %d can be changed at once'):format(#hits, edits.MAX_FILES)
  if #hits > edits.MAX_FILES then refuse_many(many) end
  local plans, places, replacements = {}, 0, 0
  for _, hit in ipairs(hits) do
    local buffer, found = buffers.open(hit), {}
    each_match(buffer.text, find, function(match)
      places = places + 1
      if places > limit then refuse_many(('it stands in more than %d places, and `limit` is that'):format(limit)) end
      local first, last = match.begin + match.first, match.begin + match.last
      local new = match.groups and filled(args.new_text, match.groups) or args.new_text
      local is_new = new ~= buffer.text:sub(first + 1, last)
      if is_new then found[#found + 1] = { first = first, last = last, new_text = new } end
      return true
    end)
    if #found > 0 then plans[#plans + 1] = edits.plan(buffer, found) end
    replacements = replacements + #found
  end
  local files, diff = edits.preview(plans, 'replacements')
  local answer = { replacements = replacements, is_preview = args.preview, is_complete = is_complete }
  if args.preview then return vim.tbl_extend('error', answer, { files = files, diff = diff }) end
  edits.make(plans, 'replace')
  return vim.tbl_extend('error', answer, { files = (edits.preview(plans, 'replacements')) })
end)

return M
