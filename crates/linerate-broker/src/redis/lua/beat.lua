-- Registers a node or renews its lease, and removes nodes whose lease has ended.
--
-- KEYS: 1 the nodes by the time of their last beat, 2 their details by node
-- ARGV: 1 node, 2 details, 3 how long a lease lasts, in milliseconds
--
-- Returns the number of nodes, and 1 if this one was not registered.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local last = redis.call('ZSCORE', KEYS[1], ARGV[1])
local over = string.format('%.0f', now - ARGV[3])
redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
local gone = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', over, 'LIMIT', 0, 1000)
if #gone > 0 then
  redis.call('ZREM', KEYS[1], unpack(gone))
  redis.call('HDEL', KEYS[2], unpack(gone))
end
local is_new = not last or tonumber(last) <= tonumber(over)
return { redis.call('ZCARD', KEYS[1]), is_new and 1 or 0 }
