-- The record of the token expires long after locks that are forgotten, never under one that is held. It is prolonged
-- once a day. One that never expires was written by an older client, or is meant to stay.
local left = redis.call('PTTL', KEYS[2])
if left >= 0 and left < 2505600000 then redis.call('PEXPIRE', KEYS[2], 2592000000) end
