-- Gives up the caller's part of the lock, and grants the lock to those waiters who fit then.
--
-- KEYS: lock, queue, alive, fence.  ARGV and answers are those of release.lua; `was` is -1 if the caller is no holder.
local call, value, grant, publish_command, client_channels = redis.call, ARGV[1], ARGV[2], ARGV[4], ARGV[5]
--include waiters.lua
--include leases.lua
--include holders.lua
--include grant_next.lua
--include watch_first.lua
if permits then remove_expired() end
local expires = call('ZSCORE', KEYS[1], value)
local mine = expires and tonumber(expires) > now
if mine then
  call('ZREM', KEYS[1], value)
  call('HDEL', KEYS[4], value)
end
local may_have_watched
if ARGV[3] == 'leave' then
  local rank = call('ZRANK', KEYS[2], value)
  may_have_watched = rank and rank < 10
  dequeue({value})
  local mark = call('HGET', KEYS[4], 'mark')
  if mark and string.match(mark, ' (.*)') == value then call('HDEL', KEYS[4], 'mark') end
end
count_holders()
local turn = 'nobody'
if permits then
  turn = grant_next('')
  if holders > 0 and (last_granted or may_have_watched) then watch_first(call('ZRANGE', KEYS[1], 0, 0)[1]) end
end
if mine and turn == 'nobody' and not forbidden then publish(ARGV[6], '') end
return {mine and 1 or -1, forbidden and 0 or 1, more and 1 or 0}
