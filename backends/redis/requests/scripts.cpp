#include "backends/redis/requests/scripts.hpp"

#include "backends/redis/requests/script_text.hpp"
#include "backends/redis/requests/sharing_scripts.hpp"

// Rules that every script keeps:
//   - Redis does not roll back. Checks come first; then a write that the server refuses if it refuses writes (READONLY,
//     OOM, ...), before anything else was changed; what announces a grant comes after the write that makes it.
//   - The owner's value is compared before its lock is touched.
//   - Times are the server's own; clients' clocks are never sent.
//   - Numbers that may be large are formatted with %.0f: Lua would print them in scientific notation.
//
// The queue is a sorted set of values by ticket; `alive` says until when (server time in ms) each of them counts as
// alive. The sign tells how it is woken: positive means by its client's channel, so that a channel without a
// subscriber means that the waiter is gone; negative means that it asks by itself.
//
// An acquire begins with what is common, a free lock without waiters: a server has one thread for all scripts.

namespace dlock::redis {

namespace {

// The common case by itself: the lock is free, there are no waiters (there is no queue), and the last token is in the
// past. Where both have 16 digits, as from 2001 to 2286, the smaller text is that of the smaller number.
//
// A token is greater than the last one and no smaller than the server's clock in microseconds, so that tokens keep
// growing even when the last one was lost. So the record of the last one may expire: 30 days after its lease began, or
// after a renewal prolonged it.
constexpr char acquire_free_text[] = R"lua(
local call, value, lease = redis.call, ARGV[1], ARGV[2]
local function clock()
  local t = call('TIME')
  return t[1] .. string.sub('00000' .. t[2], -6)
end
local function keep_fence(fence)
  call('SET', KEYS[4], fence .. ' ' .. value .. ' ' .. ARGV[6], 'EX', 2592000)
  return fence
end
local owner = call('GET', KEYS[1])
if not owner and call('PTTL', KEYS[2]) == -2 then
  local last, fence = call('GET', KEYS[4]), clock()
  if not last or #fence == 16 and string.byte(last, 17) == 32 and last < fence then
    call('SET', KEYS[1], value, 'PX', lease)
    return keep_fence(fence)
  end
end
)lua";

// hand_on(): called when the lock is free. Gives it to the first living waiter other than `me` for `grant` ms,
// within which it has to confirm, and removes dead ones on the way. The waiter's client is told the value. Answers whom
// it was given to ("": none, the lock is free; nil: me, the first in line; "more": none yet, call again) and
// whether publishing is forbidden.
//
// A call asks for 64 channels and removes some 500 waiters at most, because the server does nothing else meanwhile. A
// client whose channel has no subscriber is gone, and with it all its waiters except those that ask by themselves.
//
// In `alive`, minus infinity marks the waiter that was given the lock last until it confirms. A free lock with that
// mark shows that the waiter let its time pass. Its client is stopped or cut off, and its other waiters would let
// theirs pass one after the other, so they lose their places. Without the right to publish only those are marked that
// ask by themselves: another waiter was not told, and may find out too late.
constexpr char hand_on_text[] = R"lua(local function remove_silent()
  local last = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
  if last[2] ~= '-inf' then return false end
  local client, silent = client_of(last[1]), {}
  if client ~= client_of(ARGV[1]) then
    for _, waiter in ipairs(redis.call('ZRANGE', KEYS[2], 0, 499)) do
      if client_of(waiter) == client then silent[#silent + 1] = waiter end
    end
  end
  remove(silent)
  if not silent[1] then redis.call('ZREM', KEYS[3], last[1]) end
  return silent[1]
end
local function hand_on(grant, me)
  local waiters = redis.call('ZRANGE', KEYS[2], 0, 0)
  if not waiters[1] then return '' end
  if waiters[1] == me then return nil end
  if remove_silent() then return 'more' end
  local t = redis.call('TIME')
  local now = t[1] * 1000 + t[2] / 1000
  local deaf, asked, forbidden = {}, 0, nil
  for _ = 0, 5 do
    local dead = {}
    for _, waiter in ipairs(waiters) do
      if waiter == me then remove(dead) return nil, forbidden end
      local alive = tonumber(redis.call('ZSCORE', KEYS[3], waiter) or 0)
      local client = client_of(waiter)
      if math.abs(alive) > now and (alive < 0 or not deaf[client]) then
        if asked == 64 then remove(dead) return 'more', forbidden end
        asked = asked + 1
        redis.call('SET', KEYS[1], waiter, 'PX', grant)
        local heard = redis.pcall('PUBLISH', 'dlock:w:' .. client, waiter)
        local refused = type(heard) == 'table'
        forbidden = forbidden or refused
        if alive < 0 or refused or heard > 0 then
          remove(dead)
          redis.call('ZREM', KEYS[2], waiter)
          if refused and alive > 0 then
            redis.call('ZREM', KEYS[3], waiter)
          else
            redis.call('ZADD', KEYS[3], '-inf', waiter)
          end
          if not refused then appoint(waiter, grant) end
          return waiter, forbidden
        end
        redis.call('DEL', KEYS[1])
        deaf[client] = true
      end
      dead[#dead + 1] = waiter
    end
    remove(dead)
    waiters = redis.call('ZRANGE', KEYS[2], 0, 99)
    if not waiters[1] then return '', forbidden end
  end
  return 'more', forbidden
end
)lua";

// fence_of_mine(): the token of this acquire: the one that was minted for it, or a new one.
constexpr char acquire_text[] = R"lua(
local mode, alive, grant, place = ARGV[3], ARGV[4], ARGV[5], ARGV[7]
local function fence_of_mine()
  local last = redis.call('GET', KEYS[4])
  local before, owner = string.match(last or '', '^(%d+) (%S+)')
  if owner == value then return before end
  local fence = clock()
  if before and (#before > #fence or #before == #fence and before >= fence) then
    fence = string.format('%.0f', before + 1)
  end
  return keep_fence(fence)
end
local function leave()
  redis.call('ZREM', KEYS[2], value)
  redis.call('ZREM', KEYS[3], value)
end
if owner == value then
  redis.call('PEXPIRE', KEYS[1], lease)
  leave()
  if tonumber(lease) < tonumber(grant) then appoint(value, lease) end
  return fence_of_mine()
end
if not owner then
  local given = hand_on(grant, value)
  if not given or given == '' then
    redis.call('SET', KEYS[1], value, 'PX', lease)
    if not given then
      leave()
      appoint(value, lease)
    end
    return fence_of_mine()
  end
end
local rank, joined, ticket = -1, 0, 0
if mode ~= 'try' then
  ticket = redis.call('ZSCORE', KEYS[2], value)
  if not ticket then
    joined = 1
    ticket = place
    if ticket == '0' then
      local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]
      ticket = string.format('%.0f', (last or 0) + 1)
    end
    redis.call('ZADD', KEYS[2], ticket, value)
  end
  local t = redis.call('TIME')
  local till = t[1] * 1000 + math.floor(t[2] / 1000) + alive
  if mode == 'blind' then till = -till end
  redis.call('ZADD', KEYS[3], string.format('%.0f', till), value)
  redis.call('PEXPIRE', KEYS[2], alive * 2)
  redis.call('PEXPIRE', KEYS[3], alive * 2)
  rank = redis.call('ZRANK', KEYS[2], value)
end
return {0, redis.call('PTTL', KEYS[1]), rank, joined, tonumber(ticket)}
)lua";
constexpr auto acquire_whole = join(acquire_free_text, waiters_text, hand_on_text, acquire_text);
constexpr Script acquire_definition = {"acquire", text_of(acquire_whole), "89d7fd91665055ba33b0d659513b668a40c19a17"};

// The record of the token expires long after locks that are forgotten, never under one that is held. It is prolonged
// once a day. One that never expires was written by an older client, or is meant to stay.
constexpr char renew_text[] = R"lua(
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local renewed = redis.call('PEXPIRE', KEYS[1], ARGV[2])
local left = redis.call('PTTL', KEYS[2])
if left >= 0 and left < 2505600000 then redis.call('PEXPIRE', KEYS[2], 2592000000) end
return renewed
)lua";
constexpr Script renew_definition = {"renew", renew_text, "69aede87efcf3381c3cc46241c490f5b3747d0dc"};

// DEL comes first: it is what fails where writes are refused, and after it the server no longer refuses the grant for
// lack of memory. All others are told only where the lock really became free. The common case, no waiters (there is no
// queue), by itself again.
constexpr char release_free_text[] = R"lua(
local owner = redis.call('GET', KEYS[1])
local mine = owner == ARGV[1]
local function tell_all() return type(redis.pcall('PUBLISH', 'dlock:w:lock:' .. KEYS[1], '')) == 'table' end
if mine then
  redis.call('DEL', KEYS[1])
  if ARGV[3] == 'stay' and redis.call('PTTL', KEYS[2]) == -2 and not tell_all() then return 1 end
end
)lua";

constexpr char release_text[] = R"lua(
if ARGV[3] == 'leave' then
  local rank = redis.call('ZRANK', KEYS[2], ARGV[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('ZREM', KEYS[3], ARGV[1])
  local left = owner and not mine and rank and rank < 10 and redis.call('PTTL', KEYS[1]) or 0
  if left > 0 then appoint(owner, left) end
end
local given, forbidden
if mine or not owner then
  given, forbidden = hand_on(ARGV[2], '')
  if mine and (given == '' or given == 'more') and not forbidden then
    forbidden = tell_all()
  end
end
return {mine and 1 or owner and 0 or -1, forbidden and 0 or 1, given == 'more' and 1 or 0}
)lua";
constexpr auto release_whole = join(release_free_text, waiters_text, hand_on_text, release_text);
constexpr Script release_definition = {"release", text_of(release_whole), "be9a96f41589ec191595bb766ce9a6778e990f6e"};

// The length of the queue is the last one's place in it: that needs no right beyond those of waiting.
constexpr char inspect_text[] = R"lua(
local value = redis.call('GET', KEYS[1])
local last = redis.call('ZRANGE', KEYS[2], -1, -1)[1]
local waiters = last and redis.call('ZRANK', KEYS[2], last) + 1 or 0
return {value, redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[3]), waiters}
)lua";
constexpr Script inspect_definition = {"inspect", inspect_text, "0ddcc8844666dfddbc164b01d1a8635dbf421d5d"};

// A token is no smaller than the clock was, so the lease is at least as old as the token looks. A record that is not
// dlock's stays.
constexpr char forget_text[] = R"lua(
if redis.call('GET', KEYS[1]) or redis.call('ZRANGE', KEYS[2], 0, 0)[1] then return 0 end
local token = tonumber(string.match(redis.call('GET', KEYS[3]) or '', '^(%d+) %S+ '))
local t = redis.call('TIME')
if not token or token > t[1] * 1000000 + t[2] - ARGV[1] then return 0 end
return redis.call('DEL', KEYS[3])
)lua";
constexpr Script forget_definition = {"forget", forget_text, "c3c8b4b6e9f3dcd7f05c2dca5e81d22d5bc9532f"};

// An election is a lock whose watchers are told of its leader, too. Apart from that the scripts are the same.
constexpr char elect_begin[] = "local function attempt()";
constexpr char elect_end[] = R"lua(end
local said = attempt()
if type(said) == 'string' then redis.pcall('PUBLISH', 'dlock:w:lock:' .. KEYS[1], '') end
return said
)lua";
constexpr auto elect_whole = join(elect_begin, acquire_free_text, waiters_text, hand_on_text, acquire_text, elect_end);
constexpr Script elect_definition = {"acquire", text_of(elect_whole), "7a3f15831f77d6b4619b35f7d3b1e6564628aeef"};

}  // namespace

const Script& acquire_script(LockKind kind, bool sharded) noexcept {
  static const Sharded lock(acquire_definition, "7b74d05d700013346a38f29a163c221a8d5e7281");
  static const Sharded shared(sharing_acquire_script(), "2889635763db966078dd1d7d995df7b873fb4635");
  static const Sharded election(elect_definition, "e6c0003c020067b7f2228e6011a08cf31589a38d");
  if (kind == LockKind::election) return election.script(sharded);
  return (several_hold(kind) ? shared : lock).script(sharded);
}
const Script& renew_script(LockKind kind) noexcept {
  return several_hold(kind) ? sharing_renew_script() : renew_definition;
}
const Script& release_script(LockKind kind, bool sharded) noexcept {
  static const Sharded lock(release_definition, "ef9bac054cb0b41eb49ae7b6c32426a92a74b3af");
  static const Sharded shared(sharing_release_script(), "a78971be4142fb72c80820ba346b331796c800cd");
  return (several_hold(kind) ? shared : lock).script(sharded);
}
const Script& inspect_script(LockKind kind) noexcept {
  return several_hold(kind) ? sharing_inspect_script() : inspect_definition;
}
const Script& forget_script(LockKind kind) noexcept {
  return several_hold(kind) ? sharing_forget_script() : forget_definition;
}

}  // namespace dlock::redis
