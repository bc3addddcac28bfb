-- WebSocket frames (RFC 6455), as a client sends and reads them.

local M = { TEXT = 1, CLOSE = 8, PING = 9, PONG = 10 }

-- The largest message either way. A larger one ends the connection.
M.MAX_MESSAGE = 16 * 1024 * 1024

local function big_endian(number, bytes)
  local out = {}
  for i = bytes - 1, 0, -1 do out[#out + 1] = string.char(math.floor(number / 256 ^ i) % 256) end
  return table.concat(out)
end

-- Returns a frame. Clients must mask, so that no proxy on the way takes what a page sends for a request of its own
-- (10.3). There is no proxy in a Unix socket, and a key of zeros is a valid one that leaves all bytes as they are.
function M.frame(payload, opcode)
  local length, size = #payload, nil
  if length < 126 then
    size = string.char(128 + length)
  elseif length < 65536 then
    size = string.char(128 + 126) .. big_endian(length, 2)
  else
    size = string.char(128 + 127) .. big_endian(length, 8)
  end
  return string.char(128 + (opcode or M.TEXT)) .. size .. '\0\0\0\0' .. payload
end

-- Returns what begins at the third byte: the payload's length and the byte before it, or the bytes that it takes to say.
local function length_of(bytes)
  local length = bytes:byte(2) % 128
  if length < 126 then return length, 2 end
  local ends = length == 126 and 4 or 10
  if #bytes < ends then return nil, ends end
  length = 0
  for i = 3, ends do length = length * 256 + bytes:byte(i) end
  return length, ends
end

-- Returns a function that takes bytes as they come and calls `hear(opcode, payload)` for each message, put together
-- from its frames. It returns why the connection cannot go on, if so.
function M.reader(hear)
  local chunks, have, need, message, opcode = {}, 0, 2, '', nil
  return function(bytes)
    chunks[#chunks + 1] = bytes
    have = have + #bytes
    while have >= need do
      local all = table.concat(chunks)
      chunks = { all }
      if all:byte(2) >= 128 then return 'a frame of a server is not masked' end
      local length, ends = length_of(all)
      need = ends + (length or 0)
      if length and length + #message > M.MAX_MESSAGE then return 'a message of more than 16 MiB' end
      if length and have >= need then
        local kind, is_last, payload = all:byte(1) % 16, all:byte(1) >= 128, all:sub(ends + 1, need)
        chunks, have, need = { all:sub(need + 1) }, have - need, 2
        if kind >= M.CLOSE then
          hear(kind, payload)
        else
          if kind ~= 0 then opcode = kind end
          message = message .. payload
          if is_last then
            local whole = message
            message = ''
            hear(opcode, whole)
          end
        end
      end
    end
  end
end

return M
