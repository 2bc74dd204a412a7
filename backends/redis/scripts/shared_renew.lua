-- KEYS, ARGV and answers are those of renew.lua. An expired lease is not revived, even if it was not removed yet.
local call, value = redis.call, ARGV[1]
--include leases.lua
local expires = call('ZSCORE', KEYS[1], value)
if not expires or tonumber(expires) <= now then return 0 end
hold(value, ARGV[2], is_shared(expires))
--include prolong_record.lua
return 1
