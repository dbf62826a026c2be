-- Publishes in a plain channel, unless there was already a publication with the same key.
--
-- KEYS: 1 the key
-- ARGV: 1 channel, 2 payload, 3 PUBLISH or SPUBLISH, 4 how long the key is kept, in milliseconds
if redis.call('SET', KEYS[1], '', 'NX', 'PX', ARGV[4]) then
  redis.call(ARGV[3], ARGV[1], ARGV[2])
end
