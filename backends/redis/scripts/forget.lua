-- Removes the record of the last token if the lock is free and has no waiters. A record that is not dlock's stays.
--
-- KEYS: lock, queue, fence.  ARGV: 1 the least age of the last token in microseconds.
-- Answers 1: removed; 0: not.
--
-- A token is no smaller than the clock was, so the lease is at least as old as the token looks.
if redis.call('GET', KEYS[1]) or redis.call('ZRANGE', KEYS[2], 0, 0)[1] then return 0 end
local token = tonumber(string.match(redis.call('GET', KEYS[3]) or '', '^(%d+) %S+ '))
local time = redis.call('TIME')
if not token or token > time[1] * 1000000 + time[2] - ARGV[1] then return 0 end
return redis.call('DEL', KEYS[3])
