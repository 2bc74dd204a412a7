-- The holders for grant_next.lua, of a lock that several may hold.
local several_hold, permits = true, tonumber(call('HGET', KEYS[4], 'permits') or nil)
local holders, writer_holds
local function remove_expired()
  for i = 0, 50 do
    local expired, leases = {}, call('ZRANGE', KEYS[1], 0, i == 0 and 0 or 99, 'WITHSCORES')
    for j = 1, #leases, 2 do
      if tonumber(leases[j + 1]) > now then break end
      expired[#expired + 1] = leases[j]
    end
    if not expired[1] then return end
    call('ZREM', KEYS[1], unpack(expired))
    call('HDEL', KEYS[4], unpack(expired))
  end
end
-- The number of holders is the last one's rank plus 1: that needs no right beyond those of waiting.
local function count_holders()
  local last = call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
  holders = last[1] and call('ZRANK', KEYS[1], last[1]) + 1 or 0
  writer_holds = last[1] and not is_shared(last[2])
end
local function first_expires_in()
  local first = call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
  return first and math.max(math.ceil(first - now), 0) or 0
end
local function fits(shared)
  return holders == 0 or shared and not writer_holds and (permits == 0 or holders < permits)
end
local function add_holder(holder, ms, shared)
  hold(holder, ms, shared)
  holders, writer_holds = holders + 1, not shared
end
local function remove_holder(holder)
  call('ZREM', KEYS[1], holder)
  holders, writer_holds = holders - 1, false
end
