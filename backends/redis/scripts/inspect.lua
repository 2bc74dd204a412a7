-- KEYS: lock, queue, fence.
-- Answers {value or nil, remaining ms, text in the fence key or nil, length of the queue}.
local value = redis.call('GET', KEYS[1])
--include queue_length.lua
return {value, redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[3]), queue_length}
