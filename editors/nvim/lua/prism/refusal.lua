-- Why a command is not done: an error with one of the protocol's codes, which `commands` sends as the command's result.

local M = {}

-- Ends the command that runs. With further arguments the message is a format of theirs.
function M.refuse(code, message, ...)
  error({ code = code, message = select('#', ...) > 0 and message:format(...) or message }, 0)
end

-- Ends it with the time after which the same may work.
function M.refuse_for(retry_after_ms, code, message)
  error({ code = code, message = message, retry_after_ms = retry_after_ms }, 0)
end

function M.wrong(message, ...) M.refuse('bad_arguments', message, ...) end

-- Runs `work`, and says in its refusal which of several things it is about.
function M.about(what, work, ...)
  local ok, result = pcall(work, ...)
  if ok then return result end
  if type(result) == 'table' and result.message then result.message = ('%s: %s'):format(what, result.message) end
  error(result, 0)
end

-- Returns a value as it stands in messages.
function M.quoted(value) return (vim.json.encode(value):gsub('\\/', '/')) end

return M
