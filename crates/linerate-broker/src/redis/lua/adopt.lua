-- Moves the values of an earlier version's keys, the last two of four or five, to KEYS 1 and 2.
if #KEYS > 3 and redis.call('EXISTS', KEYS[1]) == 0 then
  local meta, stream = KEYS[#KEYS - 1], KEYS[#KEYS]
  if redis.call('EXISTS', meta) == 1 then
    redis.call('RENAME', meta, KEYS[1])
    if redis.call('EXISTS', stream) == 1 then
      redis.call('RENAME', stream, KEYS[2])
    end
  end
end

