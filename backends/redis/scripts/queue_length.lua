-- The length is the last waiter's rank: that needs no right beyond those of waiting.
local last = redis.call('ZRANGE', KEYS[2], -1, -1)[1]
local queue_length = last and redis.call('ZRANK', KEYS[2], last) + 1 or 0
