-- Takes the lock, or queues for it.
--
-- KEYS: lock, queue, alive, fence.
-- ARGV: 1 value, 2 lease in ms, 3 mode, 4 alive in ms, 5 grant in ms, 6 holder, 7 ticket, 8 publish command,
-- 9 prefix of the clients' channels, 10 channel of the lock.
--   mode: "try" (does not queue), "queue" (queues; a message reaches its client) or "blind" (queues; its client polls).
--   ticket: the waiter's earlier place, if it is to have that one again; else 0.
-- Answers the token as text: from now on the caller holds the lock for a full lease. Otherwise {0, ms, rank, joined,
-- ticket}:
--   ms: when the lock expires; -1: never; -2: it is free, but more dead waiters are before the caller than one call
--     removes: the caller repeats the request.
--   rank: how many waiters are before the caller; -1: it is not in the queue.
--   joined: 1 if the caller was not in the queue until now.
--   ticket: the caller's place in the queue; 0: none.
--
-- Rules that every script keeps:
--   - Redis does not roll back. Checks come first; then a write that the server refuses if it refuses writes (READONLY,
--     OOM, ...), before anything else was changed. A grant is published after the write that makes it.
--   - The owner's value is compared before its lock is changed.
--   - Numbers that may be large are formatted with %.0f: Lua would print them in scientific notation.
--   - The publish command, the channels' prefix and the lock's channel are arguments: in a cluster a script may publish
--     only to sharded channels in the slot of its keys.
--
-- The common case comes first, because a server has one thread for all scripts: the lock is free, there are no waiters
-- (the queue's key does not exist), and the last token is in the past. If both have 16 digits, as from 2001 to 2286,
-- the smaller text is the smaller number.
local call, value, lease = redis.call, ARGV[1], ARGV[2]
local function clock()
  local time = call('TIME')
  return time[1] .. string.sub('00000' .. time[2], -6)
end
-- The record expires 30 days after the lease began, or after a renewal prolonged it (renew.lua). It may expire, because
-- the next token is no smaller than the clock (token_after.lua).
local function record(token)
  call('SET', KEYS[4], token .. ' ' .. value .. ' ' .. ARGV[6], 'EX', 2592000)
  return token
end
local owner = call('GET', KEYS[1])
if not owner and call('PTTL', KEYS[2]) == -2 then
  local last, token = call('GET', KEYS[4]), clock()
  if not last or #token == 16 and string.byte(last, 17) == 32 and last < token then
    call('SET', KEYS[1], value, 'PX', lease)
    return record(token)
  end
end

local mode, alive, grant, publish_command, client_channels = ARGV[3], ARGV[4], ARGV[5], ARGV[8], ARGV[9]
local queues, shared = mode ~= 'try', false
--include waiters.lua
--include token_after.lua
-- A repeated request and the confirmation of a grant get the token that was recorded for their value.
local function token_of_caller()
  local last, last_owner = string.match(call('GET', KEYS[4]) or '', '^(%d+) (%S+)')
  return last_owner == value and last or record(token_after(last, clock()))
end
if owner == value then
  call('PEXPIRE', KEYS[1], lease)
  dequeue({value})
  if tonumber(lease) < tonumber(grant) then assign_watcher(value, lease) end
  return token_of_caller()
end
--include now.lua
if not owner then
--include single_holder.lua
--include grant_next.lua
  local turn = grant_next(value)
  if turn then
    add_holder(value, lease)
    if turn == 'caller' then
      dequeue({value})
      assign_watcher(value, lease)
    end
    return token_of_caller()
  end
  if last_granted then assign_watcher(last_granted, grant) end
end
local expires_in = call('PTTL', KEYS[1])
--include enqueue.lua
