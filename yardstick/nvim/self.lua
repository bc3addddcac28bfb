-- The plugin's parts that need no daemon: frames, positions, digests, expressions, what is shown. Fails with `:cquit`.
local here = vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h')
vim.opt.runtimepath:prepend(vim.fs.normalize(here .. '/../../editors/nvim'))
local text, position, websocket = require('prism.text'), require('prism.position'), require('prism.websocket')
local connection, prism = require('prism.connection'), require('prism')
local count, failed = 0, {}

local function same(what, found, expected)
  count = count + 1
  if not vim.deep_equal(found, expected) then
    failed[#failed + 1] = ('%s: %s, not %s'):format(what, vim.inspect(found), vim.inspect(expected))
  end
end

-- What a client sends, read as a server would: unmasked by taking the mask bit and the key away.
local function as_server(bytes)
  local size = bytes:byte(2) - 128
  local ends = size == 127 and 10 or size == 126 and 4 or 2
  assert(bytes:sub(ends + 1, ends + 4) == '\0\0\0\0')
  return bytes:sub(1, 1) .. string.char(size) .. bytes:sub(3, ends) .. bytes:sub(ends + 5)
end

for _, length in ipairs({ 0, 1, 125, 126, 127, 65535, 65536, 200000 }) do
  local payload, heard = ('é'):rep(length):sub(1, length), {}
  local bytes = as_server(websocket.frame(payload))
  local take = websocket.reader(function(opcode, message) heard[#heard + 1] = { opcode, message } end)
  take(bytes)
  same('a frame of ' .. length, heard, { { 1, payload } })
  -- The same byte by byte, or in pieces where that would take long.
  heard = {}
  take = websocket.reader(function(opcode, message) heard[#heard + 1] = { opcode, message } end)
  for at = 1, #bytes, length < 1000 and 1 or 1371 do
    take(bytes:sub(at, at + (length < 1000 and 0 or 1370)))
  end
  same('a frame of ' .. length .. ' in pieces', heard, { { 1, payload } })
end
do
  local heard = {}
  local take = websocket.reader(function(opcode, message) heard[#heard + 1] = { opcode, message } end)
  take('\1\3abc' .. '\137\2hi' .. '\0\1d' .. '\128\2ef' .. '\129\0')
  same('a message in frames, with a ping between', heard, { { 9, 'hi' }, { 1, 'abcdef' }, { 1, '' } })
  same('a masked frame', type(take('\129\129\0\0\0\0a')), 'string')
  take = websocket.reader(function() end)
  same('a message that is too long', type(take('\129\127\0\0\0\0\1\0\0\1')), 'string')
end

-- Positions: what is told and what comes back are the same position.
local words = 'aß€😀b'
for _, pair in ipairs({ { 0, 0 }, { 1, 1 }, { 2, 3 }, { 3, 6 }, { 5, 10 }, { 6, 11 }, { 99, 11 } }) do
  same('UTF-16 unit ' .. pair[1], position.to_byte(words, pair[1]), pair[2])
  if pair[1] < 99 then same('byte ' .. pair[2], position.to_units(words, pair[2]), pair[1]) end
end
same('within a character', position.to_byte(words, 4), nil)
same('UTF-8', { position.to_byte(words, 6, 'utf-8'), position.to_units(words, 6, 'utf-8') }, { 6, 6 })
same('UTF-32', { position.to_byte(words, 4, 'utf-32'), position.to_units(words, 10, 'utf-32') }, { 10, 4 })
for _, case in ipairs({ { '', 1 }, { 'a', 1 }, { 'a\n', 2 }, { 'a\r\nb', 2 }, { 'a\rb\n\nc', 4 }, { '\r\r\n', 3 } }) do
  local whole = case[1]
  local lines = position.lines(whole)
  same('lines of ' .. vim.inspect(whole), #lines, case[2])
  for offset = 0, #whole do
    local is_within_a_break = whole:sub(offset, offset + 1) == '\r\n'
    if not is_within_a_break then
      same(
        ('byte %d of %s'):format(offset, vim.inspect(whole)),
        position.offset(whole, lines, position.at(whole, lines, offset)),
        offset
      )
    end
  end
end

-- What is text.
for _, good in ipairs({ '', 'a', 'ä', '€', '😀', 'a😀b\r\n' }) do
  same(good, text.is_text(good), true)
end
for _, bad in ipairs({ '\0', 'a\255', '\192\128', '\237\160\128', '\240\159\152', '\244\144\128\128', 'a\228b' }) do
  same(vim.inspect(bad), text.is_text(bad), false)
end
same('SHA-256', text.digest('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
local digest_of_nul = '59b271ae1bbcb1d31d41929817f4b16fb439eb4f31520b5ad1d5ce98920a7138'
same('SHA-256 of what has a NUL', text.digest('a\0b'), digest_of_nul)
same('SHA-256 of NULs', text.digest('\0'), '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d')
local pairs_of_base64 = { { '', '' }, { 'f', 'Zg==' }, { 'fo', 'Zm8=' }, { 'foo', 'Zm9v' }, { '\251\255\254', '+//+' } }
for _, pair in ipairs(pairs_of_base64) do
  same('base64', text.from_base64(pair[2]), pair[1])
end
for _, bad in ipairs({ 'Z', 'Zg', 'Zg=', 'Zh==', 'Zg==Zg==', '====', 'Z===', 'Zm9v\n', '+__+' }) do
  same(bad, text.from_base64(bad), nil)
end

-- Rust's expressions as Vim's.
local search = require('prism.verbs.search')
local function first_of(expression, subject) return vim.fn.matchstr(subject, '\\%#=2\\C' .. search.vim_pattern(expression)) end
for _, case in ipairs({
  { '(\\w+)=(\\w+)', 'key=value', 'key=value' },
  { 'v[0-9]+', 'a v22', 'v22' },
  { 'a|bc', 'xbc', 'bc' },
  { '^b', 'ab', '' },
  { 'a.c', 'abc', 'abc' },
  { 'a\\.c', 'abc a.c', 'a.c' },
  { '"[^"]*?"', 'x "a" "b"', '"a"' },
  { 'x{2,3}', 'xxxx', 'xxx' },
  { 'x{2,3}?', 'xxxx', 'xx' },
  { '\\bfoo\\b', 'afoo foo', 'foo' },
  { '\\$\\^~', 'a$^~', '$^~' },
  { '[\\]^-]+', 'a]^-b', ']^-' },
  { '(?:ab)+', 'ababa', 'abab' },
  { 'a\\\\b', 'a\\b', 'a\\b' },
  { 'b$', 'bab', 'b' },
  { '[a-c]\\d?', 'c7', 'c7' },
}) do
  same(case[1], first_of(case[1], case[2]), case[3])
end
same('what Vim has not', pcall(search.vim_pattern, '(?i)a'), false)

for _, case in ipairs({
  { '*.rs', 'src/a.rs', true },
  { '*.rs', 'a.rsx', false },
  { 'src/*.rs', 'src/a.rs', true },
  { 'src/*.rs', 'src/b/a.rs', false },
  { '**/*.{rs,toml}', 'x/y/z.toml', true },
  { '**/a.rs', 'a.rs', true },
  { 'a-?.txt', 'a-b.txt', true },
}) do
  same(case[1] .. ' ' .. case[2], search.glob_of(case[1])(case[2]), case[3])
end

-- The edit that is told of a change leads from the text before to the text now.
local function applied(whole, edit)
  local lines = position.lines(whole)
  local first, last = position.offset(whole, lines, edit.range.start), position.offset(whole, lines, edit.range['end'])
  return whole:sub(1, first) .. edit.new_text .. whole:sub(last + 1)
end
local function record_of(whole)
  local lines = vim.split(whole, '\n', { plain = true })
  local has_end = #lines > 1 and lines[#lines] == ''
  if has_end then lines[#lines] = nil end
  return { text = whole, lines = lines, has_end = has_end, separator = '\n' }
end
local texts = {
  '',
  '\n',
  'a',
  'a\n',
  'a\nb\n',
  'a\nb',
  'a\nx\nb\n',
  'x\na\nb\n',
  'a\nb\nx\n',
  'b\n',
  '\n\n',
  'a\n\nb\n',
  'ä\n😀\nb\n',
}
for _, before in ipairs(texts) do
  for _, now in ipairs(texts) do
    local edit = require('prism.events').edit_between(record_of(before), record_of(now))
    same(('%s -> %s'):format(vim.inspect(before), vim.inspect(now)), applied(before, edit), now)
  end
end

-- A config that waits is mentioned once, shown on request with what to type, and gone when it does not wait.
do
  local said, windows = {}, #vim.api.nvim_list_wins()
  vim.notify = function(words) said[#said + 1] = words end
  vim.ui.select = function(items, _, choose) choose(items[1]) end
  local config = { path = '/w/prism.toml', why = 'it was changed', fix = 'prism trust /w/prism.toml', unified = '-a\n+b' }
  connection.heard.desk({ configs = { config } })
  connection.heard.desk({ configs = { config } })
  same('what is mentioned', { #said, (said[1] or ''):match('^Prism: A config waits') }, { 1, 'Prism: A config waits' })
  same('what waits', vim.g.prism_waiting, 1)
  prism.decide()
  local shown = {
    'A config waits for you to see it: it was changed',
    'In a terminal: prism trust /w/prism.toml',
    '',
    '-a',
    '+b',
  }
  same('what is shown', vim.api.nvim_buf_get_lines(0, 0, -1, true), shown)
  same('whether it can be changed', vim.bo.modifiable, false)
  connection.heard.desk({})
  same('windows', #vim.api.nvim_list_wins(), windows)
  same('what waits then', vim.g.prism_waiting, 0)
  connection.heard.desk({ configs = { config } })
  same('what waits anew', #said, 2)
end

-- What agents run is shown in a buffer of its own, which takes neither the focus nor anything that is typed.
do
  local heard, runs = connection.heard, require('prism.runs')
  local window, buffer, inserted = vim.api.nvim_get_current_win(), vim.api.nvim_get_current_buf(), false
  vim.api.nvim_create_autocmd('TermOpen', { callback = function() inserted = true end })
  local function lines_of(bufnr)
    vim.wait(1000, function() return vim.fn.join(vim.api.nvim_buf_get_lines(bufnr, 0, -1, true), ''):find('exit code') ~= nil end)
    return vim.tbl_filter(function(line) return line ~= '' end, vim.api.nvim_buf_get_lines(bufnr, 0, -1, true))
  end
  local show = { id = 1, kind = 'command', title = 'fixer: cargo test', command = 'cargo test', agent_id = 'fixer', path = '/w' }
  heard.show(show)
  heard.show_output({ id = 1, text = 'running\r\n\27[32mo' })
  heard.show_output({ id = 1, text = 'k\27[0m\r\n' })
  heard.show_output({ id = 7, text = 'of nobody' })
  heard.show_ended({ id = 1, exit_code = 0, note = 'its time\nwas over' })
  local run = runs.all[1]
  same('what is shown of a run', lines_of(run.bufnr), {
    '/w $ cargo test', 'running', 'ok', '[exit code 0; its time was over]',
  })
  same('its name', vim.api.nvim_buf_get_name(run.bufnr), 'prism://fixer/cargo test')
  same('what the person looks at', { vim.api.nvim_get_current_win(), vim.api.nvim_get_current_buf() }, { window, buffer })
  same('what their own plugins hear of it', { inserted, vim.api.nvim_get_mode().mode }, { false, 'n' })
  same('whether it is a file of theirs', require('prism.buffers').path_of(run.bufnr), nil)
  -- The next one of the same takes the place of one that has ended, in the window too, and of no other.
  prism.runs()
  same('what is looked at', vim.api.nvim_get_current_buf(), run.bufnr)
  heard.show(vim.tbl_extend('force', show, { id = 2 }))
  same('the next one', { #runs.all, vim.api.nvim_get_current_buf() }, { 1, runs.all[1].bufnr })
  same('its name then', vim.api.nvim_buf_get_name(runs.all[1].bufnr), 'prism://fixer/cargo test')
  heard.show(vim.tbl_extend('force', show, { id = 3 }))
  same('two at once', vim.api.nvim_buf_get_name(runs.all[2].bufnr), 'prism://fixer/cargo test (2)')
  runs.lost()
  same('what ends with the connection', { runs.all[1].id, runs.all[2].id }, {})
  for id = 4, 60 do
    heard.show(vim.tbl_extend('force', show, { id = id, title = 'fixer: make ' .. id }))
    heard.show_ended({ id = id, signal = 9 })
  end
  same('runs that are kept', #runs.all, 32)
  vim.cmd('only')
end

io.stdout:write(
  table.concat(failed, '\n'),
  ('%snvim: %d of %d parts are right'):format(#failed > 0 and '\n' or '', count - #failed, count)
)
if #failed > 0 then vim.cmd('cquit') end
