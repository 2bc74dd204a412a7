-- The holder for grant_next.lua, of a lock that one may hold. The lock is free, and one grant is all.
local several_hold = false
local function add_holder(owner, ms) call('SET', KEYS[1], owner, 'PX', ms) end
local function remove_holder() call('DEL', KEYS[1]) end
local function fits() return true end
