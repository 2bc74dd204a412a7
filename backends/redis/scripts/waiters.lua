-- The queue is a sorted set of values by ticket (KEYS[2]). A second one (KEYS[3]) says until when, in ms of the
-- server's time, each waiter counts as alive. The sign of that time says how the waiter learns of a grant: positive: by
-- its client's channel, so if the channel has no subscriber, the waiter is dead; negative: its client polls. Minus
-- infinity marks a waiter that was granted the lock, until it confirms the grant by an acquire.
local function client_of(waiter) return string.match(waiter, '^[^:]*') end
local forbidden
-- Returns the number of receivers; nil if this user may not publish there.
local function publish(channel, message)
  local receivers = redis.pcall(publish_command, channel, message)
  if type(receivers) == 'number' then return receivers end
  forbidden = true
end
local function dequeue(waiters)
  if not waiters[1] then return end
  call('ZREM', KEYS[2], unpack(waiters))
  call('ZREM', KEYS[3], unpack(waiters))
end
-- An expiry publishes no message. So one waiter gets a message with the time until `owner` expires, and checks then;
-- the others check by themselves, later the further back they are. It is the first waiter of a different client than
-- the owner's, because the owner's client may be dead or stopped as a whole. Only if the queue seems to have no other
-- client, it is the first one. At most eight channels are tried.
local function assign_watcher(owner, ms)
  local own, unreachable, tried, spare = client_of(owner), {}, 0, nil
  local function assigned(waiter, client)
    tried = tried + 1
    local receivers = publish(client_channels .. client, waiter .. ' ' .. ms)
    return tried == 8 or not receivers or receivers > 0
  end
  local from, to = 0, 0
  repeat
    local waiters = call('ZRANGE', KEYS[2], from, to)
    for _, waiter in ipairs(waiters) do
      local client = client_of(waiter)
      if client == own then
        spare = spare or waiter
      elseif not unreachable[client] then
        if assigned(waiter, client) then return end
        unreachable[client] = true
      end
    end
    if from == 0 and spare and client_of(call('ZRANGE', KEYS[2], -1, -1)[1]) == own then break end
    from, to = to + 1, to * 10 + 9
  until to > 99 or not waiters[1]
  if spare then assigned(spare, own) end
end
