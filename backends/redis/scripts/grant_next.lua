-- grant_next(caller, probe): grants the lock for `grant` ms to those living waiters who fit, in their order, until the
-- caller's place. They have to confirm within that time. Dead waiters before them are removed. Returns "caller": it is
-- the caller's turn, and it fits; "nobody": there are no waiters; nil: the next waiter does not fit, or one call does
-- not do all (`more`). The last waiter that was granted the lock is `last_granted`.
--
-- The server does nothing else meanwhile, so a call publishes to 64 waiters and removes some 500 at most. If a client's
-- channel has no subscriber, the client is dead, and with it all its waiters except those that poll.
local unreachable, asked, more, last_granted = {}, 0, nil, nil
-- If a waiter has a mark but is no holder, it let the time of its grant pass. Its client is stopped or cut off, and its
-- other waiters would let theirs pass one after the other, so they lose their places; not so if the client is the
-- caller's, which is alive.
local function remove_unresponsive()
  local marks = call('ZRANGE', KEYS[3], 0, several_hold and 99 or 0, 'WITHSCORES')
  for i = 1, #marks, 2 do
    if marks[i + 1] ~= '-inf' then return false end
    if not call('ZSCORE', KEYS[1], marks[i]) then
      local client, unresponsive = client_of(marks[i]), {}
      if client ~= client_of(value) then
        for _, waiter in ipairs(call('ZRANGE', KEYS[2], 0, 499)) do
          if client_of(waiter) == client then unresponsive[#unresponsive + 1] = waiter end
        end
      end
      dequeue(unresponsive)
      if unresponsive[1] then return true end
      call('ZREM', KEYS[3], marks[i])
    end
  end
end
-- Without the right to publish, a waiter gets the lock, but may find out too late. So it gets a mark only if it polls.
local function grant_to(waiter, client, shared, polls)
  asked = asked + 1
  add_holder(waiter, grant, shared)
  local receivers = publish(client_channels .. client, waiter)
  if receivers == 0 and not polls then
    remove_holder(waiter)
    unreachable[client] = true
    return false
  end
  call('ZREM', KEYS[2], waiter)
  if receivers or polls then
    call('ZADD', KEYS[3], '-inf', waiter)
  else
    call('ZREM', KEYS[3], waiter)
  end
  last_granted = waiter
  return true
end
-- Returns whether the walk ends at one of these waiters, and grant_next()'s result then.
local function grant_among(waiters, dead, caller, probe)
  for i = 1, #waiters, 2 do
    local waiter, shared = waiters[i], waiters[i + 1] % 1 > 0
    if waiter == caller then return true, fits(shared) and 'caller' or nil end
    local client, alive_until = client_of(waiter), tonumber(call('ZSCORE', KEYS[3], waiter) or 0)
    local polls = alive_until < 0
    local lives = math.abs(alive_until) > now and (polls or not unreachable[client])
    if lives and fits(shared) then
      more = asked == 64
      if more then return true end
      lives = grant_to(waiter, client, shared, polls)
      if lives and not several_hold then return true end
    elseif lives then
      if probe and not shared and not polls then
        lives = probe(waiter, client)
        unreachable[client] = not lives
      end
      if lives then return true end
    end
    if not lives then dead[#dead + 1] = waiter end
  end
end
local function grant_next(caller, probe)
  local waiters = call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  if waiters[1] and waiters[1] ~= caller and remove_unresponsive() then
    more = true
    return nil
  end
  for _ = 0, 5 do
    if not waiters[1] then return 'nobody' end
    local dead = {}
    local ended, turn = grant_among(waiters, dead, caller, probe)
    dequeue(dead)
    if ended then return turn end
    waiters = call('ZRANGE', KEYS[2], 0, 99, 'WITHSCORES')
  end
  more = true
end
