-- Stores a value for all nodes, and removes expired values, a few at a time.
--
-- KEYS: 1 values by id, 2 expiry by id
-- ARGV: 1 id, 2 value, 3 expiry in seconds since 1970, or +inf
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
local over = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', redis.call('TIME')[1], 'LIMIT', 0, 1000)
if #over > 0 then
  redis.call('HDEL', KEYS[1], unpack(over))
  redis.call('ZREM', KEYS[2], unpack(over))
end
