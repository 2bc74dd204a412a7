// What scripts are put together from: C++ joins texts, and some text is the same in several.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace dlock::redis {

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

// appoint(): of those who wait. Tells a waiter to look when the time of `owner` ends, because an expiry tells nobody.
// It is the first of another client than the owner's, since the whole client may be dead or stopped. Only where the
// queue seems to have no other client, it is the first in line. Others look by themselves, later the further back they
// are. It knows who waits by KEYS[2], the queue, and KEYS[3], who counts as alive.
inline constexpr char waiters_text[] = R"lua(
local function client_of(waiter) return string.match(waiter, '^[^:]*') end
local function appoint(owner, ms)
  local own, deaf, asked, spare = client_of(owner), {}, 0, nil
  local function told(waiter)
    asked = asked + 1
    local heard = redis.pcall('PUBLISH', 'dlock:w:' .. client_of(waiter), waiter .. ' ' .. ms)
    return asked == 8 or type(heard) == 'table' or heard > 0
  end
  local from, to = 0, 0
  repeat
    local waiters = redis.call('ZRANGE', KEYS[2], from, to)
    for _, waiter in ipairs(waiters) do
      local client = client_of(waiter)
      if client == own then
        spare = spare or waiter
      elseif not deaf[client] then
        if told(waiter) then return end
        deaf[client] = true
      end
    end
    if from == 0 and spare and client_of(redis.call('ZRANGE', KEYS[2], -1, -1)[1]) == own then break end
    from, to = to + 1, to * 10 + 9
  until to > 99 or not waiters[1]
  if spare then told(spare) end
end
local function remove(waiters)
  if not waiters[1] then return end
  redis.call('ZREM', KEYS[2], unpack(waiters))
  redis.call('ZREM', KEYS[3], unpack(waiters))
end
)lua";

}  // namespace dlock::redis
