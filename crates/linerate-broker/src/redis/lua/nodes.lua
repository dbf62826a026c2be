-- Returns the IDs or the details of the registered nodes.
--
-- KEYS: 1 the nodes by the time of their last beat, 2 their details by node
-- ARGV: 1 how long a lease lasts, in milliseconds, 2 ids or details
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local over = string.format('(%.0f', now - ARGV[1])
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], over, '+inf', 'LIMIT', 0, 4096)
if ARGV[2] == 'ids' or #ids == 0 then
  return ids
end
return redis.call('HMGET', KEYS[2], unpack(ids))
