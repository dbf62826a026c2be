-- Stores that a client is present in a channel, or no longer.
--
-- KEYS: 1 the leases by the time of their last renewal, 2 the entries of the lease, 3 the clients
--       of the channel, 4 the number of clients of each of its users
-- ARGV: 1 lease, 2 what to do: set, remove, or sweep for a lease that has ended, 3 client, 4 name
--       of the entry in the lease, 5 user, 6 the client's information (5 and 6 only to set)
--
-- Returns 0 if the lease has ended, and otherwise 1.
if ARGV[2] ~= 'sweep' and not redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  return 0
end
-- A value is its lease, the length of the user, the user and the information.
local stored = redis.call('HGET', KEYS[3], ARGV[3])
if ARGV[2] == 'set' then
  redis.call('SADD', KEYS[2], ARGV[4])
  redis.call('HSET', KEYS[3], ARGV[3], ARGV[1] .. ' ' .. #ARGV[5] .. ' ' .. ARGV[5] .. ARGV[6])
  if not stored then
    redis.call('HINCRBY', KEYS[4], ARGV[5], 1)
  end
  return 1
end
redis.call('SREM', KEYS[2], ARGV[4])
if not stored then
  return 1
end
local lease, length, rest = string.match(stored, '^(%S+) (%d+) (.*)$')
if lease == ARGV[1] then
  local user = string.sub(rest, 1, tonumber(length))
  redis.call('HDEL', KEYS[3], ARGV[3])
  if redis.call('HINCRBY', KEYS[4], user, -1) <= 0 then
    redis.call('HDEL', KEYS[4], user)
  end
end
return 1
