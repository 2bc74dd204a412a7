-- Frees the lock if it is the caller's, and grants it to the next waiter.
--
-- KEYS: lock, queue, alive.
-- ARGV: 1 value, 2 grant in ms, 3 "leave" if the caller leaves the queue, too, else "stay", 4 publish command, 5 prefix
-- of the clients' channels, 6 channel of the lock.
-- Answers 1: freed; or {was, may_publish, more}:
--   was: 1: freed; 0: another owner's; -1: it was free.
--   may_publish: 0 if this user may not publish, else 1.
--   more: 1 if the lock is free and one call could not remove all dead waiters: the caller repeats the request.
--
-- DEL comes first: it fails if the server refuses writes, and after it the server no longer refuses the grant for lack
-- of memory. The lock's channel gets a message only if the lock became free. The common case comes first: there are no
-- waiters (the queue's key does not exist).
local call, value = redis.call, ARGV[1]
local owner = call('GET', KEYS[1])
local mine = owner == value
if mine then
  call('DEL', KEYS[1])
  if ARGV[3] == 'stay' and call('PTTL', KEYS[2]) == -2 then
    if type(redis.pcall(ARGV[4], ARGV[6], '')) == 'number' then return 1 end
  end
end

local grant, publish_command, client_channels = ARGV[2], ARGV[4], ARGV[5]
--include waiters.lua
if ARGV[3] == 'leave' then
  local rank = call('ZRANK', KEYS[2], value)
  dequeue({value})
  -- One of the first may be watching the owner.
  local left = owner and not mine and rank and rank < 10 and call('PTTL', KEYS[1]) or 0
  if left > 0 then assign_watcher(owner, left) end
end
if owner and not mine then return {0, forbidden and 0 or 1, 0} end
--include now.lua
--include single_holder.lua
--include grant_next.lua
grant_next('')
if last_granted then
  assign_watcher(last_granted, grant)
elseif mine and not forbidden then
  publish(ARGV[6], '')
end
return {mine and 1 or -1, forbidden and 0 or 1, more and 1 or 0}
