-- Removes a value and returns it.
--
-- KEYS: 1 the value
local value = redis.call('GET', KEYS[1])
redis.call('DEL', KEYS[1])
return value
