-- The holder for grant_next.lua, of a lock that one may hold. The lock is free.
local several_hold, free = false, true
local function add_holder(owner, ms)
  call('SET', KEYS[1], owner, 'PX', ms)
  free = false
end
local function remove_holder()
  call('DEL', KEYS[1])
  free = true
end
local function fits() return free end
