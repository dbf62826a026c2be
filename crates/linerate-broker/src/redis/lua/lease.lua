-- Begins or renews a lease, and finds leases that have ended and must be swept.
--
-- KEYS: 1 the leases by the time of their last renewal, 2 the ended leases by the time from which
--       they may be swept, 3 the run of the server
-- ARGV: 1 lease, 2 how long a lease lasts, in milliseconds, 3 begin, renew, or look if the node
--       holds no lease here
--
-- Returns 1, or 0 if the lease had ended, and, unless a lease begins, some ended leases, which the
-- caller has to sweep.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- A server that was restarted, or has taken over, may have lost the newest changes. So all leases
-- end with the run of the server.
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') or ''
if redis.call('GETSET', KEYS[3], run) ~= run then
  for _, lease in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    redis.call('ZADD', KEYS[1], 0, lease)
  end
end

local renewed = redis.call('ZSCORE', KEYS[1], ARGV[1])
local is_held = ARGV[3] ~= 'renew' or (renewed and tonumber(renewed) > now - ARGV[2])
if is_held and ARGV[3] ~= 'look' then
  redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[1])
end
local over = string.format('%.0f', now - ARGV[2])
for _, lease in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', over, 'LIMIT', 0, 1000)) do
  redis.call('ZREM', KEYS[1], lease)
  redis.call('ZADD', KEYS[2], 0, lease)
end
-- A node that is given a lease has five seconds to sweep it, before another node is asked to.
local due = {}
if ARGV[3] ~= 'begin' then
  due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now), 'LIMIT', 0, 4)
end
for _, lease in ipairs(due) do
  redis.call('ZADD', KEYS[2], string.format('%.0f', now + 5000), lease)
end
return { is_held and 1 or 0, due }
