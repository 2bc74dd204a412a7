-- Read-write locks and semaphores have one queue. Readers, and permits, hold the lock together while there is room, a
-- writer alone, and none before earlier waiters. So readers that are neighbours in the queue get it together.
--
-- The lock is a sorted set of the holders' values by the server's time (ms) until which each holds it: each holder has
-- a lease of its own. It expires some time after the last lease, so that the owner of an expired lease is still known.
-- In it and in the queue, a score with a half belongs to a value that shares the lock; a writer's is a whole number.
--
-- The record of tokens is a hash: "last", the last token; "permits", as it is used now (0: a read-write lock); each
-- holder's value, its token and the holder for people; "mark", until when and whose a waiting writer's mark is. A set
-- of holders without such a record is another program's data.
--include now.lua
local function is_shared(score) return score % 1 > 0 end
-- A lease counts from now. It is a millisecond longer, because the time is rounded down.
local function hold(holder, ms, shared)
  call('ZADD', KEYS[1], string.format('%.1f', now + 1 + ms + (shared and 0.5 or 0)), holder)
  local kept = ms + 30000
  if call('PTTL', KEYS[1]) < kept then call('PEXPIRE', KEYS[1], kept) end
end
