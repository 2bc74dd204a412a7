-- KEYS, ARGV and answers are those of acquire.lua, except:
-- ARGV: 8 permits (0: a read-write lock), 9 "1" if the caller shares the lock, 10 publish command, 11 prefix of the
-- clients' channels, 12 channel of the lock.
--   mode "mark": as "try"; besides, if a writer finds the lock busy, readers that do not queue are kept out for the
--     next `alive` ms.
-- Also answers {2, permits}: others use the semaphore with another number of permits.
local call, value, lease, mode, alive, grant = redis.call, ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local wanted, shared, publish_command, client_channels = tonumber(ARGV[8]), ARGV[9] == '1', ARGV[10], ARGV[11]
local queues = mode == 'queue' or mode == 'blind'
--include waiters.lua
--include leases.lua
--include holders.lua
--include grant_next.lua
--include watch_first.lua
--include token_after.lua
-- If the caller is the first to hold the lock, the record has fields of earlier holders at most.
local function token_of_caller(first)
  local mine = call('HGET', KEYS[4], value)
  if mine then return string.match(mine, '^%d+') end
  local token = token_after(call('HGET', KEYS[4], 'last'), time[1] .. string.sub('00000' .. time[2], -6))
  if first then call('DEL', KEYS[4]) end
  call('HSET', KEYS[4], 'last', token, 'permits', ARGV[8], value, token .. ' ' .. ARGV[6])
  call('PEXPIRE', KEYS[4], 2592000000)
  return token
end
local foreign = {err = 'WRONGTYPE another kind of lock, or of data, is there'}
if permits then
  remove_expired()
elseif call('ZRANGE', KEYS[1], 0, 0)[1] then
  return foreign
end
count_holders()
if holders > 0 and call('ZSCORE', KEYS[1], value) then
  hold(value, lease, shared)
  dequeue({value})
  grant_next('')
  if last_granted or more or tonumber(lease) < tonumber(grant) then watch_first(value) end
  return token_of_caller()
end
permits = permits or wanted
-- A writer that waits while others read keeps readers out that may hold the lock for ever. So a reader's request probes
-- the first waiter, by a message that it may ask: if its channel has no subscriber, it is dead.
local function probe(writer, client)
  return writer_holds or publish(client_channels .. client, writer .. ' ' .. first_expires_in()) ~= 0
end
local turn = grant_next(value, shared and probe)
if turn == 'nobody' and holders == 0 then permits = wanted end
if permits ~= wanted then
  if more and holders == 0 then return {0, -2, -1, 0, 0} end
  if last_granted then watch_first() end
  if permits == 0 or wanted == 0 then return foreign end
  return {2, permits}
end
-- The marks of writers that do not queue bind callers that do not queue, either.
local marked, writer = string.match(wanted == 0 and not queues and call('HGET', KEYS[4], 'mark') or '', '^(%d+) (.*)')
local kept_out = math.max((marked or 0) - now, 0)
if turn and fits(shared) and (kept_out == 0 or not shared) then
  local first = holders == 0
  add_holder(value, lease, shared)
  if turn == 'caller' then
    dequeue({value})
    grant_next('')
    watch_first(value)
  end
  return token_of_caller(first)
end
if mode == 'mark' and not shared and (kept_out == 0 or writer == value) then
  call('HSET', KEYS[4], 'mark', string.format('%.0f ', now + alive) .. value)
  call('PEXPIRE', KEYS[4], 2592000000)
end
if last_granted then watch_first() end
local expires_in = more and -2 or turn and kept_out > 0 and kept_out or first_expires_in()
--include enqueue.lua
