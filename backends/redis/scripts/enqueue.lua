-- Ends an acquire that was not granted: queues the caller if its mode says so, and answers (acquire.lua). The ticket of
-- a waiter that shares the lock has a half (leases.lua).
local rank, joined, ticket = -1, 0, 0
if queues then
  ticket = call('ZSCORE', KEYS[2], value)
  if not ticket then
    joined, ticket = 1, tonumber(ARGV[7])
    if ticket == 0 then ticket = math.floor(call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or 0) + 1 end
    call('ZADD', KEYS[2], string.format('%.1f', ticket + (shared and 0.5 or 0)), value)
  end
  local alive_until = now + alive
  if mode == 'blind' then alive_until = -alive_until end
  call('ZADD', KEYS[3], string.format('%.0f', alive_until), value)
  call('PEXPIRE', KEYS[2], alive * 2)
  call('PEXPIRE', KEYS[3], alive * 2)
  rank = call('ZRANK', KEYS[2], value)
end
return {0, expires_in, rank, joined, math.floor(ticket)}
