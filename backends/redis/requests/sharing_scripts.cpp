#include "backends/redis/requests/sharing_scripts.hpp"

#include "backends/redis/requests/script_text.hpp"

// Scripts of one weighted queue, by the rules of scripts.cpp: a reader or a permit enters beside others while there is
// room, a writer alone, and none before those that came earlier. So neighbouring readers enter together.
//
// The lock is a sorted set of the holders' values by the server's time (ms) until which each holds it: everyone's lease
// is its own. It expires some time after the last lease, so that the owner of an expired lease is still known. In it
// and in the queue, a score with a half belongs to one who shares; a writer's is a whole number.
//
// The record of tokens is a hash: "last", the last token; "permits", as it is used now (0: a read-write lock); each
// holder's value, its token and the holder for people; "mark", until when and whose a waiting writer's mark is. A set
// of holders without such a record is another program's data.

namespace dlock::redis {

namespace {

// hold(): from now on for so long, or again for so long. A millisecond more, because the beginning is rounded down.
constexpr char holding_text[] = R"lua(
local call, value, time = redis.call, ARGV[1], redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function is_shared(score) return score % 1 > 0 end
local function hold(who, ms, shared)
  call('ZADD', KEYS[1], string.format('%.1f', now + 1 + ms + (shared and 0.5 or 0)), who)
  local kept = ms + 30000
  if call('PTTL', KEYS[1]) < kept then call('PEXPIRE', KEYS[1], kept) end
end
)lua";

// end_holds(): removes those that have expired.
// look(): how many hold it (`used`), and whether it is a writer (`whole`).
constexpr char holders_text[] = R"lua(
local permits = tonumber(call('HGET', KEYS[4], 'permits') or nil)
local used, whole
local function end_holds()
  for i = 0, 50 do
    local ended, holds = {}, call('ZRANGE', KEYS[1], 0, i == 0 and 0 or 99, 'WITHSCORES')
    for j = 1, #holds, 2 do
      if tonumber(holds[j + 1]) > now then break end
      ended[#ended + 1] = holds[j]
    end
    if not ended[1] then return end
    call('ZREM', KEYS[1], unpack(ended))
    call('HDEL', KEYS[4], unpack(ended))
  end
end
local function look()
  local last = call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
  used = last[1] and call('ZRANK', KEYS[1], last[1]) + 1 or 0
  whole = last[1] and not is_shared(last[2])
end
local function first_end()
  local first = call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
  return first and math.max(math.ceil(first - now), 0) or 0
end
local function fits(shared)
  return used == 0 or shared and not whole and (permits == 0 or used < permits)
end
local function leave(who)
  call('ZREM', KEYS[2], who)
  call('ZREM', KEYS[3], who)
end
)lua";

// admit(): lets in, in their order, those living waiters who fit, for `grant` ms within which they have to confirm, and
// removes dead ones on the way. Answers "me": it is the turn of `me`, who fits; "nobody": there are no waiters; nil:
// the next waiter does not fit, or there is more to do than one call does (`more`). The last one who was let in is
// `last_in`.
//
// Bounds, channels, silent clients and their marks are those of hand_on(). A waiter is found to be silent when it was
// let in and is not among the holders any more, although it did not say that it leaves.
//
// A writer that waits while others read keeps readers out that may hold the lock for ever. So a reader who asks has the
// first one in line probed, by a message that it may look: one whose channel has no subscriber is gone.
constexpr char admit_text[] = R"lua(
local deaf, asked, forbidden, more, last_in = {}, 0, nil, nil, nil
local function tell(waiter, text)
  local heard = redis.pcall('PUBLISH', 'dlock:w:' .. client_of(waiter), text)
  local refused = type(heard) == 'table'
  forbidden = forbidden or refused
  return refused or heard > 0, refused
end
local function remove_silent()
  local marks = call('ZRANGE', KEYS[3], 0, 99, 'WITHSCORES')
  for i = 1, #marks, 2 do
    if marks[i + 1] ~= '-inf' then return false end
    if not call('ZSCORE', KEYS[1], marks[i]) then
      local client, silent = client_of(marks[i]), {}
      if client ~= client_of(value) then
        for _, waiter in ipairs(call('ZRANGE', KEYS[2], 0, 499)) do
          if client_of(waiter) == client then silent[#silent + 1] = waiter end
        end
      end
      remove(silent)
      if silent[1] then return true end
      call('ZREM', KEYS[3], marks[i])
    end
  end
end
local function let_in(waiter, shared, blind)
  asked = asked + 1
  hold(waiter, grant, shared)
  local heard, refused = tell(waiter, waiter)
  if not blind and not heard then
    call('ZREM', KEYS[1], waiter)
    deaf[client_of(waiter)] = true
    return false
  end
  call('ZREM', KEYS[2], waiter)
  if refused and not blind then
    call('ZREM', KEYS[3], waiter)
  else
    call('ZADD', KEYS[3], '-inf', waiter)
  end
  used, whole, last_in = used + 1, not shared, waiter
  return true
end
local function go_on(with) appoint(last_in or with, more and 0 or first_end()) end
local function admit(me, probe)
  local waiters = call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  if waiters[1] and remove_silent() then
    more = true
    return nil
  end
  for _ = 0, 5 do
    if not waiters[1] then return 'nobody' end
    local dead = {}
    for i = 1, #waiters, 2 do
      local waiter, shared = waiters[i], is_shared(waiters[i + 1])
      if waiter == me then
        remove(dead)
        return fits(shared) and 'me' or nil
      end
      local till = tonumber(call('ZSCORE', KEYS[3], waiter) or 0)
      local lives = math.abs(till) > now and (till < 0 or not deaf[client_of(waiter)])
      if lives and fits(shared) then
        if asked == 64 then
          more = true
          remove(dead)
          return nil
        end
        lives = let_in(waiter, shared, till < 0)
        if not lives then dead[#dead + 1] = waiter end
      elseif lives then
        if probe and not shared and not whole and till > 0 then
          lives = tell(waiter, waiter .. ' ' .. first_end())
          deaf[client_of(waiter)] = not lives
        end
        if lives then
          remove(dead)
          return nil
        end
        dead[#dead + 1] = waiter
      else
        dead[#dead + 1] = waiter
      end
    end
    remove(dead)
    waiters = call('ZRANGE', KEYS[2], 0, 99, 'WITHSCORES')
  end
  more = true
end
)lua";

// The marks of writers who do not queue bind those who do not queue, either.
constexpr char sharing_acquire_text[] = R"lua(
local lease, mode, alive, place, shared = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[7]), ARGV[9] == '1'
local queues = mode == 'queue' or mode == 'blind'
local function token_of_mine(alone)
  local mine = call('HGET', KEYS[4], value)
  if mine then return string.match(mine, '^%d+') end
  local last, token = call('HGET', KEYS[4], 'last'), time[1] .. string.sub('00000' .. time[2], -6)
  if last and (#last > #token or #last == #token and last >= token) then
    token = string.format('%.0f', last + 1)
  end
  if alone then call('DEL', KEYS[4]) end
  call('HSET', KEYS[4], 'last', token, 'permits', ARGV[8], value, token .. ' ' .. ARGV[6])
  call('PEXPIRE', KEYS[4], 2592000000)
  return token
end
local function enter(waited)
  local alone = used == 0
  hold(value, lease, shared)
  used, whole = used + 1, not shared
  if waited then
    leave(value)
    admit('')
    go_on(value)
  end
  return token_of_mine(alone)
end
local foreign = {err = 'WRONGTYPE another kind of lock, or of data, is there'}
if permits then
  end_holds()
elseif call('ZRANGE', KEYS[1], 0, 0)[1] then
  return foreign
end
look()
if used > 0 and call('ZSCORE', KEYS[1], value) then
  hold(value, lease, shared)
  leave(value)
  admit('')
  if last_in or more or tonumber(lease) < tonumber(grant) then go_on(value) end
  return token_of_mine()
end
local wanted = tonumber(ARGV[8])
permits = permits or wanted
local turn = admit(value, shared)
if turn == 'nobody' and used == 0 then permits = wanted end
if permits ~= wanted then
  if more and used == 0 then return {0, -2, -1, 0, 0} end
  if last_in then go_on() end
  if permits == 0 or wanted == 0 then return foreign end
  return {2, permits}
end
local marked, writer = string.match(wanted == 0 and not queues and call('HGET', KEYS[4], 'mark') or '', '^(%d+) (.*)')
local kept_out = math.max((marked or 0) - now, 0)
if turn and fits(shared) and (kept_out == 0 or not shared) then return enter(turn == 'me') end
if mode == 'mark' and not shared and (kept_out == 0 or writer == value) then
  call('HSET', KEYS[4], 'mark', string.format('%.0f ', now + alive) .. value)
  call('PEXPIRE', KEYS[4], 2592000000)
end
if last_in then go_on() end
local rank, joined, ticket = -1, 0, 0
if queues then
  ticket = call('ZSCORE', KEYS[2], value)
  if not ticket then
    joined = 1
    ticket = place
    if ticket == 0 then
      ticket = math.floor(call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or 0) + 1
    end
    call('ZADD', KEYS[2], string.format('%.1f', ticket + (shared and 0.5 or 0)), value)
  end
  local till = now + alive
  if mode == 'blind' then till = -till end
  call('ZADD', KEYS[3], string.format('%.0f', till), value)
  call('PEXPIRE', KEYS[2], alive * 2)
  call('PEXPIRE', KEYS[3], alive * 2)
  rank = call('ZRANK', KEYS[2], value)
end
return {0, more and -2 or turn and kept_out > 0 and kept_out or first_end(), rank, joined, math.floor(ticket)}
)lua";
constexpr char sharing_acquire_begin[] = "local grant = ARGV[5]";
constexpr auto sharing_acquire_whole =
    join(sharing_acquire_begin, waiters_text, holding_text, holders_text, admit_text, sharing_acquire_text);
constexpr Script sharing_acquire_definition = {"acquire", text_of(sharing_acquire_whole),
                                               "58b210e4f168cf2f285e95b0a8ee64b765bf63a2"};

// What has expired is not revived, though it was not removed yet.
constexpr char sharing_renew_text[] = R"lua(
local till = call('ZSCORE', KEYS[1], value)
if not till or tonumber(till) <= now then return 0 end
hold(value, ARGV[2], is_shared(till))
local left = call('PTTL', KEYS[2])
if left >= 0 and left < 2505600000 then call('PEXPIRE', KEYS[2], 2592000000) end
return 1
)lua";
constexpr auto sharing_renew_whole = join(holding_text, sharing_renew_text);
constexpr Script sharing_renew_definition = {"renew", text_of(sharing_renew_whole),
                                             "aa06972bdd47c4ff81952870080a40ff2f44638b"};

constexpr char sharing_release_text[] = R"lua(
if permits then end_holds() end
local till = call('ZSCORE', KEYS[1], value)
local mine = till and tonumber(till) > now
if mine then
  call('ZREM', KEYS[1], value)
  call('HDEL', KEYS[4], value)
end
local left
if ARGV[3] == 'leave' then
  local rank = call('ZRANK', KEYS[2], value)
  left = rank and rank < 10
  leave(value)
  local mark = call('HGET', KEYS[4], 'mark')
  if mark and string.match(mark, ' (.*)') == value then call('HDEL', KEYS[4], 'mark') end
end
look()
local turn = 'nobody'
if permits then
  turn = admit('')
  if used > 0 and (last_in or left) then go_on(call('ZRANGE', KEYS[1], 0, 0)[1]) end
end
if mine and turn == 'nobody' and not forbidden then
  local heard = redis.pcall('PUBLISH', 'dlock:w:lock:' .. KEYS[1], '')
  forbidden = type(heard) == 'table'
end
return {mine and 1 or -1, forbidden and 0 or 1, more and 1 or 0}
)lua";
constexpr char sharing_release_begin[] = "local grant = ARGV[2]";
constexpr auto sharing_release_whole =
    join(sharing_release_begin, waiters_text, holding_text, holders_text, admit_text, sharing_release_text);
constexpr Script sharing_release_definition = {"release", text_of(sharing_release_whole),
                                               "5b52df5add2fd016463f3e795b53ccba68d4acb2"};

// No more holders are shown than a reply may have.
constexpr char sharing_inspect_text[] = R"lua(
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local permits = redis.call('HGET', KEYS[3], 'permits')
local holds, holders = redis.call('ZRANGE', KEYS[1], 0, 9999, 'WITHSCORES'), {}
if holds[1] and not permits then return {err = 'WRONGTYPE another kind of data is there'} end
for i = 1, #holds, 2 do
  local left = math.floor(holds[i + 1]) - now
  if left > 0 then
    holders[#holders + 1] = left
    holders[#holders + 1] = holds[i + 1] % 1 > 0 and 1 or 0
    holders[#holders + 1] = redis.call('HGET', KEYS[3], holds[i]) or ''
  end
end
local last = redis.call('ZRANGE', KEYS[2], -1, -1)[1]
local waiters = last and redis.call('ZRANK', KEYS[2], last) + 1 or 0
return {tonumber(permits or 0), redis.call('HGET', KEYS[3], 'last'), waiters, holders}
)lua";
constexpr Script sharing_inspect_definition = {"inspect", sharing_inspect_text,
                                               "e19ed4007104485f70d4bc818168dfbb808100f0"};

constexpr char sharing_forget_text[] = R"lua(
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
local token = tonumber(redis.call('HGET', KEYS[3], 'last') or nil)
local t = redis.call('TIME')
if not token or token > t[1] * 1000000 + t[2] - ARGV[1] then return 0 end
if last and tonumber(last) > t[1] * 1000 + t[2] / 1000 or redis.call('ZRANGE', KEYS[2], 0, 0)[1] then return 0 end
redis.call('DEL', KEYS[1])
return redis.call('DEL', KEYS[3])
)lua";
constexpr Script sharing_forget_definition = {"forget", sharing_forget_text,
                                              "99920e0516f1075d9dd74d259b1f001883dc4e54"};

}  // namespace

const Script& sharing_acquire_script() noexcept {
  return sharing_acquire_definition;
}
const Script& sharing_renew_script() noexcept {
  return sharing_renew_definition;
}
const Script& sharing_release_script() noexcept {
  return sharing_release_definition;
}
const Script& sharing_inspect_script() noexcept {
  return sharing_inspect_definition;
}
const Script& sharing_forget_script() noexcept {
  return sharing_forget_definition;
}

}  // namespace dlock::redis
