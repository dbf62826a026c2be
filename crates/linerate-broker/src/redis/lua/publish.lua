-- Publishes in a durable channel: numbers the publication, stores it, and sends it to the
-- subscribers, atomically.
--
-- KEYS: 1 the stream's meta, 2 the stream, 3 the answer to an earlier publication with the same
--       key (optional), the former keys of meta and stream (optional)
-- ARGV: 1 channel, 2 payload, 3 meta, 4 size, 5 ttl, 6 ttl of the stream's meta, 7 epoch if a new
--       one begins, 8 PUBLISH or SPUBLISH, 9 ttl of the answer; all in milliseconds

local answer = #KEYS % 2 == 1 and KEYS[3]
if answer then
  local known = redis.call('HMGET', answer, 'epoch', 'offset')
  if known[1] then
    return known
  end
end

-- A server that was restarted, or has taken over, may have lost the newest publications and would
-- assign their offsets again. So an epoch ends with the run of the server.
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') or ''
local stored = redis.call('HMGET', KEYS[1], 'epoch', 'run')
local epoch = stored[1]
if not epoch or stored[2] ~= run then
  epoch = ARGV[7]
  -- First a command that a server without memory refuses: after one that frees memory, it would
  -- accept all others.
  redis.call('HSET', KEYS[1], 'epoch', epoch, 'run', run)
  redis.call('HDEL', KEYS[1], 'offset')
  redis.call('DEL', KEYS[2])
end

local offset = string.format('%.0f', redis.call('HINCRBY', KEYS[1], 'offset', 1))
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('XADD', KEYS[2], 'MAXLEN', ARGV[4], offset .. '-' .. now, 'payload', ARGV[2], 'meta', ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[6])
if answer then
  redis.call('HSET', answer, 'epoch', epoch, 'offset', offset)
  redis.call('PEXPIRE', answer, ARGV[9])
end

local head = '\0lr1 ' .. offset .. ' ' .. epoch .. ' ' .. #ARGV[3] .. '\n'
redis.call(ARGV[8], ARGV[1], head .. ARGV[3] .. ARGV[2])
return { epoch, offset }
