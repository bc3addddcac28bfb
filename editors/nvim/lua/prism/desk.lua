-- What waits for the person, as the daemon last said: requests of agents, changes to confirm, configs to see, and the
-- grants that are alive. Nothing is asked unasked: a question that pops up would be answered by the key that was meant
-- for the text.

local connection, roots, text = require('prism.connection'), require('prism.roots'), require('prism.text')

local api, fn, heard, one_line = vim.api, vim.fn, connection.heard, text.one_line
-- `windows` are those in which a config is shown, by its key.
local desk = { requests = {}, confirmations = {}, grants = {}, configs = {}, seen = {}, windows = {}, last = 0 }
local M = {}

local function touches(folders)
  return vim.iter(folders or {}):any(function(folder)
    return roots.hold(folder) or vim.iter(roots.open):any(function(root) return roots.is_beneath(root, folder) end)
  end)
end

-- Returns what something that waits is about, in one line.
local function label(item)
  if item.fix then return 'A config waits for you to see it: ' .. one_line(item.why) end
  local agent = one_line(item.agent_id)
  if not item.request_id then return agent .. ' wants to ' .. one_line((item.shown or {}).action or item.kind) end
  local scopes, folders = table.concat(item.scopes or {}, ', '), one_line(table.concat(item.roots or {}, ', '))
  return ('%s asks for %s in %s: %s'):format(agent, scopes, folders, one_line(item.reason or ''))
end

-- Of a config, another text under the same name is another.
local function key_of(item)
  return item.request_id or item.confirmation_id or item.path .. item.why .. (item.unified or '')
end

local function waiting() return vim.iter({ desk.confirmations, desk.requests, desk.configs }):flatten():totable() end

-- Says something at the bottom of the screen, in one line: more would have Neovim wait for the person's Enter.
local function mention(words)
  local half = math.floor(math.max(vim.v.echospace - 1, 20) / 2)
  if fn.strdisplaywidth(words) > 2 * half then words = fn.strcharpart(words, 0, half) .. '… (:PrismDecide)' end
  vim.notify(words)
end

-- Closes a window, if it is not the last one.
local function close(window) if api.nvim_win_is_valid(window) then pcall(api.nvim_win_close, window, true) end end

function heard.desk(message)
  for _, list in ipairs({ 'requests', 'confirmations', 'grants', 'configs' }) do desk[list] = message[list] or {} end
  local items, seen = waiting(), {}
  vim.g.prism_waiting = #items
  for _, item in ipairs(items) do
    local key = key_of(item)
    seen[key] = true
    local is_ours = not item.request_id or touches(item.roots)
    if is_ours and not desk.seen[key] then mention(('Prism: %s (:PrismDecide)'):format(label(item))) end
  end
  for key, window in pairs(desk.windows) do
    if not seen[key] then
      desk.windows[key] = nil
      close(window)
    end
  end
  desk.seen = seen
end

function heard.decided(message) if message.error then mention('Prism: ' .. one_line(message.error.message)) end end

local function say(word)
  desk.last = desk.last + 1
  connection.send(vim.tbl_extend('error', word, { id = desk.last }))
end

-- Returns what is to be decided on, whole, for a person to read.
local function in_full(item)
  if item.request_id then
    local minutes = math.ceil((item.ttl_seconds or 0) / 60)
    local new_scopes = 'new for this agent: ' .. table.concat(item.new_scopes or {}, ', ')
    return { label(item), new_scopes, ('for %d minutes'):format(minutes) }
  end
  local shown = item.fix and item or (item.shown or {}).shown or item.shown or {}
  -- A config is only shown: its word is given in a terminal.
  local lines = { label(item), item.fix and 'In a terminal: ' .. one_line(item.fix) or nil }
  lines[#lines + 1] = ''
  local body = shown.unified or (shown.lines and table.concat(shown.lines, '\n')) or vim.inspect(shown)
  vim.list_extend(lines, vim.tbl_map(one_line, vim.split(body, '\n', { plain = true })))
  for _, why in ipairs((item.shown or {}).because or {}) do lines[#lines + 1] = 'because ' .. one_line(why) end
  if item.is_cut and not item.fix then lines[#lines + 1] = '(It is cut: deny it here, or allow it in the console.)' end
  return lines
end

-- Shows something in a window of its own, and returns that.
local function show(item)
  vim.cmd('botright new')
  local options = vim.bo[api.nvim_get_current_buf()]
  options.buftype, options.bufhidden, options.modeline = 'nofile', 'wipe', false
  api.nvim_buf_set_lines(0, 0, -1, true, in_full(item))
  options.modifiable, options.syntax = false, 'diff'
  return api.nvim_get_current_win()
end

function M.decide()
  local items = waiting()
  if #items == 0 then return vim.notify('Prism: nothing waits for you') end
  vim.ui.select(items, { prompt = 'Prism', format_item = label }, function(item)
    if not item then return end
    local window, key = show(item), key_of(item)
    if item.fix then
      if desk.windows[key] then close(desk.windows[key]) end
      desk.windows[key] = window
      return
    end
    vim.cmd('redraw')
    vim.ui.select({ 'Deny', 'Allow' }, { prompt = label(item) }, function(word)
      close(window)
      local about = { request_id = item.request_id, confirmation_id = item.confirmation_id, digest = item.digest }
      if word then say(vim.tbl_extend('error', about, { type = 'decide', approve = word == 'Allow' })) end
    end)
  end)
end

function M.revoke()
  if #desk.grants == 0 then return vim.notify('Prism: no agent has a grant') end
  local function of_grant(grant)
    return ('%s in %s'):format(one_line(grant.agent_id), one_line(table.concat(grant.roots or {}, ', ')))
  end
  vim.ui.select(desk.grants, { prompt = 'Take back', format_item = of_grant }, function(grant)
    if grant then say({ type = 'revoke', session_id = grant.session_id }) end
  end)
end

return M
