-- Stores that a node occupies a name, or no longer.
--
-- KEYS: 1 the leases by the time of their last renewal, 2 the names of the lease, 3 the leases that
--       occupy the name
-- ARGV: 1 lease, 2 what to do: set, remove, or sweep for a lease that has ended, 3 the name
--
-- Returns -1 if the lease has ended, 1 if the name became occupied or vacant, and otherwise 0. A
-- change that is repeated, because its answer was lost, has the same result.
if ARGV[2] ~= 'sweep' and not redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  return -1
end
local stored = redis.call('HGET', KEYS[3], ARGV[1])
if ARGV[2] == 'set' then
  if stored then
    return tonumber(stored)
  end
  local is_first = redis.call('HLEN', KEYS[3]) == 0 and 1 or 0
  redis.call('SADD', KEYS[2], ARGV[3])
  redis.call('HSET', KEYS[3], ARGV[1], is_first)
  return is_first
end
redis.call('SREM', KEYS[2], ARGV[3])
redis.call('HDEL', KEYS[3], ARGV[1])
if ARGV[2] == 'sweep' and not stored then
  return 0
end
return redis.call('HLEN', KEYS[3]) == 0 and 1 or 0
