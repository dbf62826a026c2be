-- Returns the clients that are present in a channel.
--
-- KEYS: 1 the leases by the time of their last renewal, 2 the clients of the channel
-- ARGV: 1 how long a lease lasts, in milliseconds, 2 the maximum size of the result in bytes
--
-- Returns '1' and the information of each client, or '0' if it is too large.
local time = redis.call('TIME')
local over = time[1] * 1000 + math.floor(time[2] / 1000) - ARGV[1]
local is_over, seen, found, bytes, cursor = {}, {}, { '1' }, 0, '0'
repeat
  local page = redis.call('HSCAN', KEYS[2], cursor, 'COUNT', 512)
  cursor = page[1]
  for index = 1, #page[2], 2 do
    local client = page[2][index]
    local lease, length, rest = string.match(page[2][index + 1], '^(%S+) (%d+) (.*)$')
    if is_over[lease] == nil then
      local renewed = redis.call('ZSCORE', KEYS[1], lease)
      is_over[lease] = not renewed or tonumber(renewed) <= over
    end
    if not is_over[lease] and not seen[client] then
      seen[client] = true
      local info = string.sub(rest, length + 1)
      bytes = bytes + #info
      if bytes > tonumber(ARGV[2]) then
        return { '0' }
      end
      found[#found + 1] = info
    end
  end
until cursor == '0'
return found
