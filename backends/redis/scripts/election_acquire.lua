-- An election is a lock with observers: they are notified of a new leader, too, not only of the end of the last one.
-- KEYS, ARGV and answers are those of acquire.lua.
local function acquire()
--include acquire.lua
end
local answer = acquire()
if type(answer) == 'string' then redis.pcall(ARGV[8], ARGV[10], '') end
return answer
