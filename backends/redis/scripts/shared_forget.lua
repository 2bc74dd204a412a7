-- Removes the lock's keys if no lease is left and it has no waiters. KEYS, ARGV and answers are those of forget.lua.
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
local token = tonumber(redis.call('HGET', KEYS[3], 'last') or nil)
local time = redis.call('TIME')
if not token or token > time[1] * 1000000 + time[2] - ARGV[1] then return 0 end
if last and tonumber(last) > time[1] * 1000 + time[2] / 1000 or redis.call('ZRANGE', KEYS[2], 0, 0)[1] then return 0 end
redis.call('DEL', KEYS[1])
return redis.call('DEL', KEYS[3])
