// What scripts are put together from: C++ joins texts, and some text is the same in several.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "backends/redis/connection/script.hpp"

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

// appoint(): of those who wait. Tells a waiter to look when the time of `owner` ends, because an expiry is not
// announced. It is the first of another client than the owner's, since the whole client may be dead or stopped. Only
// where the queue seems to have no other client, it is the first in line. Others look by themselves, later the further
// back they are. It knows who waits by KEYS[2], the queue, and KEYS[3], who counts as alive.
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

// A script, and its form for a cluster: there a script may publish only to channels in the slot of its keys, to those
// who listen at this very node.
class Sharded {
 public:
  Sharded(const Script& plain, std::string_view sha1_of_sharded)
      : plain_(plain), text_(begin), sharded_{plain.name, {}, sha1_of_sharded} {
    text_ += plain.text;
    replace("'PUBLISH', 'dlock:w:lock:' .. KEYS[1]", "'SPUBLISH', channels .. 'lock'");
    replace("'PUBLISH', 'dlock:w:' .. ", "'SPUBLISH', channels .. ");
    sharded_.text = text_;
  }
  Sharded(const Sharded&) = delete;
  Sharded& operator=(const Sharded&) = delete;

  [[nodiscard]] const Script& script(bool sharded) const noexcept { return sharded ? sharded_ : plain_; }

 private:
  static constexpr std::string_view begin = "local channels = 'dlock:w:' .. string.match(KEYS[2], '{.-}') .. ':'\n";

  void replace(std::string_view from, std::string_view to) {
    for (std::size_t at = text_.find(from); at != std::string::npos; at = text_.find(from, at + to.size())) {
      text_.replace(at, from.size(), to);
    }
  }

  const Script plain_;
  std::string text_;
  Script sharded_;
};

}  // namespace dlock::redis
