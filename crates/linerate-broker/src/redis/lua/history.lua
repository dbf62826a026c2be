-- Reads a part of a stream and its position.
--
-- KEYS: 1 the stream's meta, 2 the stream, the former keys of both (optional)
-- ARGV: 1 epoch if a new one begins, 2 ttl, 3 ttl of the stream's meta, both in milliseconds,
--       4 epoch of the position after which to begin, 5 its offset, 6 maximum number of
--       publications (-1 for all), 7 XRANGE or XREVRANGE
--
-- Returns epoch, newest offset, offset of the oldest kept publication (empty if there is none),
-- publications.

local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') or ''
local stored = redis.call('HMGET', KEYS[1], 'epoch', 'run', 'offset')
local epoch, newest = stored[1], stored[3] or '0'
if not epoch or stored[2] ~= run then
  epoch, newest = ARGV[1], '0'
  redis.call('DEL', KEYS[1], KEYS[2])
  redis.call('HSET', KEYS[1], 'epoch', epoch, 'run', run)
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])

-- The id of an entry is its offset and its time of publication. Entries that are too old are
-- removed here, a few at a time; usually the first one is not too old.
local time = redis.call('TIME')
local oldest_time = time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(ARGV[2])
local oldest, count = '', 1
while oldest == '' do
  local entries = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', count)
  local too_old = {}
  for _, entry in ipairs(entries) do
    local offset, published = string.match(entry[1], '(%d+)-(%d+)')
    if tonumber(published) >= oldest_time then
      oldest = offset
      break
    end
    too_old[#too_old + 1] = entry[1]
  end
  if #too_old > 0 then
    redis.call('XDEL', KEYS[2], unpack(too_old))
  end
  if #entries == 0 then
    break
  end
  count = 64
end

local wanted = tonumber(ARGV[6])
if wanted == 0 or (ARGV[4] ~= '' and ARGV[4] ~= epoch) then
  return { epoch, newest, oldest, {} }
end
-- Offsets above 2^53 would lose digits, so they stay text: "(" begins after all entries of an
-- offset.
local first = '-'
if ARGV[4] ~= '' then
  first = '(' .. ARGV[5] .. '-18446744073709551615'
end
local bounds = { first, '+' }
if ARGV[7] == 'XREVRANGE' then
  bounds = { '+', first }
end
local entries
if wanted < 0 then
  entries = redis.call(ARGV[7], KEYS[2], bounds[1], bounds[2])
else
  entries = redis.call(ARGV[7], KEYS[2], bounds[1], bounds[2], 'COUNT', ARGV[6])
end
return { epoch, newest, oldest, entries }
