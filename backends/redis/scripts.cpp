#include "backends/redis/scripts.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

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
// An acquire begins with what is common, a lock that nobody has or waits for: a server has one thread for all scripts.

namespace dlock::redis {

namespace {

template <std::size_t... N>
constexpr auto join(const char (&... parts)[N]) {
  std::array<char, (0 + ... + (N - 1))> out{};
  auto at = out.begin();
  ((at = std::copy_n(parts, N - 1, at)), ...);
  return out;
}

template <std::size_t N>
constexpr std::string_view text_of(const std::array<char, N>& text) {
  return {text.data(), text.size()};
}

// fence_of_mine(): the token of this acquire: the one that was minted for it, or a new one, greater than the last and
// no smaller than the server's clock in microseconds, so that tokens keep growing even when the last one was lost.
constexpr char acquire_free_text[] = R"lua(
local value, lease, mode, alive, grant, holder = unpack(ARGV)
local function fence_of_mine()
  local last = redis.call('GET', KEYS[4])
  local before, owner = string.match(last or '', '^(%d+) (%S+)')
  if owner == value then return before end
  local t = redis.call('TIME')
  local fence = t[1] .. string.sub('00000' .. t[2], -6)
  if before and (#before > #fence or #before == #fence and before >= fence) then
    fence = string.format('%.0f', before + 1)
  end
  redis.call('SET', KEYS[4], fence .. ' ' .. value .. ' ' .. holder)
  return fence
end
local owner = redis.call('GET', KEYS[1])
if not owner and not redis.call('ZRANGE', KEYS[2], 0, 0)[1] then
  redis.call('SET', KEYS[1], value, 'PX', lease)
  return {1, fence_of_mine()}
end
)lua";

// hand_on(): called when nobody holds the lock. Gives it to the first living waiter other than `me` for `grant` ms,
// within which it has to confirm, and removes dead ones on the way (a bounded number, so that no call takes long).
// The waiter's client is told the value. Answers whom it was given to ("": nobody, the lock is free; nil: me, who is
// the first in line) and whether publishing is forbidden.
constexpr char hand_on_text[] = R"lua(
local function hand_on(grant, me)
  local now, forbidden
  for _ = 1, 64 do
    local head = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
    if not head then return '', forbidden end
    if head == me then return nil, forbidden end
    if not now then
      local t = redis.call('TIME')
      now = t[1] * 1000 + t[2] / 1000
    end
    local alive = tonumber(redis.call('ZSCORE', KEYS[3], head) or 0)
    local given = false
    if math.abs(alive) > now then
      redis.call('SET', KEYS[1], head, 'PX', grant)
      local client = string.match(head, '^[^:]*')
      local heard = redis.pcall('PUBLISH', 'dlock:w:' .. client, head)
      if type(heard) == 'table' then forbidden = true end
      given = alive < 0 or type(heard) == 'table' or heard > 0
      if not given then redis.call('DEL', KEYS[1]) end
    end
    redis.call('ZREM', KEYS[2], head)
    redis.call('ZREM', KEYS[3], head)
    if given then return head, forbidden end
  end
  return 'more', forbidden
end
)lua";

constexpr char acquire_text[] = R"lua(
local function leave()
  redis.call('ZREM', KEYS[2], value)
  redis.call('ZREM', KEYS[3], value)
end
if owner == value then
  redis.call('PEXPIRE', KEYS[1], lease)
  leave()
  return {1, fence_of_mine()}
end
if not owner then
  local given = hand_on(grant, value)
  if not given or given == '' then
    redis.call('SET', KEYS[1], value, 'PX', lease)
    if not given then leave() end
    return {1, fence_of_mine()}
  end
end
local rank = -1
if mode ~= 'try' then
  if not redis.call('ZSCORE', KEYS[2], value) then
    local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]
    redis.call('ZADD', KEYS[2], string.format('%.0f', (last or 0) + 1), value)
  end
  local t = redis.call('TIME')
  local till = t[1] * 1000 + math.floor(t[2] / 1000) + alive
  if mode == 'blind' then till = -till end
  redis.call('ZADD', KEYS[3], string.format('%.0f', till), value)
  redis.call('PEXPIRE', KEYS[2], alive * 2)
  redis.call('PEXPIRE', KEYS[3], alive * 2)
  rank = redis.call('ZRANK', KEYS[2], value)
end
return {0, redis.call('PTTL', KEYS[1]), rank}
)lua";
constexpr auto acquire_whole = join(acquire_free_text, hand_on_text, acquire_text);
constexpr Script acquire_definition = {"acquire", text_of(acquire_whole), "4b6c28c3e51d28a503bcf5d05f1dcd0216e27544"};

constexpr char renew_text[] = R"lua(
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
)lua";
constexpr Script renew_definition = {"renew", renew_text, "dac977473ed0da5e2a244aca2dc6c00948050dc9"};

// DEL comes first: it is what fails where writes are refused, and after it the server no longer refuses the grant for
// lack of memory. Everybody else is told only where the lock really became free.
constexpr char release_text[] = R"lua(
local owner = redis.call('GET', KEYS[1])
local mine = owner == ARGV[1]
if mine then redis.call('DEL', KEYS[1]) end
if ARGV[3] == 'leave' then
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('ZREM', KEYS[3], ARGV[1])
end
local forbidden
if mine or not owner then
  local given
  given, forbidden = hand_on(ARGV[2], '')
  if mine and (given == '' or given == 'more') and not forbidden then
    forbidden = type(redis.pcall('PUBLISH', 'dlock:w:lock:' .. KEYS[1], '')) == 'table'
  end
end
return {mine and 1 or owner and 0 or -1, forbidden and 0 or 1}
)lua";
constexpr auto release_whole = join(hand_on_text, release_text);
constexpr Script release_definition = {"release", text_of(release_whole), "69820fbc6f9b4ad5b4dbcb0fc51d4f128530941d"};

// The length of the queue is the last one's place in it: that needs no right beyond those of waiting.
constexpr char inspect_text[] = R"lua(
local value = redis.call('GET', KEYS[1])
local last = redis.call('ZRANGE', KEYS[2], -1, -1)[1]
local waiters = last and redis.call('ZRANK', KEYS[2], last) + 1 or 0
return {value, redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[3]), waiters}
)lua";
constexpr Script inspect_definition = {"inspect", inspect_text, "0ddcc8844666dfddbc164b01d1a8635dbf421d5d"};

}  // namespace

const Script& acquire_script() noexcept {
  return acquire_definition;
}
const Script& renew_script() noexcept {
  return renew_definition;
}
const Script& release_script() noexcept {
  return release_definition;
}
const Script& inspect_script() noexcept {
  return inspect_definition;
}

}  // namespace dlock::redis
