-- KEYS: lock, queue, fence.
-- Answers {permits, last token or nil, length of the queue, holders}, each holder as three elements: remaining ms, 1 if
-- it shares the lock, and "<token> <holder>" or "" if it has not confirmed its grant. There are no more holders than a
-- reply may have elements for.
local call = redis.call
--include now.lua
local permits = call('HGET', KEYS[3], 'permits')
local leases, holders = call('ZRANGE', KEYS[1], 0, 9999, 'WITHSCORES'), {}
if leases[1] and not permits then return {err = 'WRONGTYPE another kind of data is there'} end
for i = 1, #leases, 2 do
  local left = math.floor(leases[i + 1]) - now
  if left > 0 then
    holders[#holders + 1] = left
    holders[#holders + 1] = leases[i + 1] % 1 > 0 and 1 or 0
    holders[#holders + 1] = call('HGET', KEYS[3], leases[i]) or ''
  end
end
--include queue_length.lua
return {tonumber(permits or 0), call('HGET', KEYS[3], 'last'), queue_length, holders}
