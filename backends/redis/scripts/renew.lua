-- Extends the caller's lease.
--
-- KEYS: lock, fence.  ARGV: 1 value, 2 lease in ms.
-- Answers 1: extended; 0: the lock is not the caller's, and nothing was changed.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local renewed = redis.call('PEXPIRE', KEYS[1], ARGV[2])
--include prolong_record.lua
return renewed
