#include "torture/rig/proxy_stream.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace dlock::rig {

namespace {

// Data beyond this stays with the sender.
constexpr std::size_t most_kept = 1 << 20;

}  // namespace

bool ProxyStream::wants_input() const {
  return !sender_ended_ && !finished_ && traffic_.mode != Traffic::Mode::stop && kept_ < most_kept;
}

std::size_t ProxyStream::take(int source, Clock::time_point now) {
  std::array<char, 65536> bytes;
  std::size_t total = 0;
  while (wants_input()) {
    const ssize_t n = ::recv(source, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) {  // a broken connection counts as an orderly end: earlier data is forwarded
      sender_ended_ = true;
      break;
    }
    const auto count = static_cast<std::size_t>(n);
    total += count;
    if (traffic_.mode == Traffic::Mode::swallow) continue;
    chunks_.push_back({.due = now + traffic_.delay, .bytes = std::string(bytes.data(), count)});
    kept_ += count;
  }
  return total;
}

std::string_view ProxyStream::ready(Clock::time_point now) const {
  if (finished_ || chunks_.empty() || traffic_.mode != Traffic::Mode::forward || chunks_.front().due > now) return {};
  const std::string_view rest = std::string_view(chunks_.front().bytes).substr(passed_of_first_);
  if (traffic_.drip_bytes == 0) return rest;
  return next_drip_ > now ? std::string_view() : rest.substr(0, traffic_.drip_bytes);
}

void ProxyStream::passed(std::size_t count, Clock::time_point now) {
  passed_of_first_ += count;
  kept_ -= count;
  if (passed_of_first_ == chunks_.front().bytes.size()) {
    chunks_.pop_front();
    passed_of_first_ = 0;
  }
  if (traffic_.drip_bytes != 0) next_drip_ = now + traffic_.drip_interval;
}

std::optional<ProxyStream::Clock::time_point> ProxyStream::next_due(Clock::time_point now) const {
  if (finished_ || chunks_.empty() || traffic_.mode != Traffic::Mode::forward) return std::nullopt;
  const auto due = std::max(chunks_.front().due, traffic_.drip_bytes == 0 ? Clock::time_point() : next_drip_);
  return due > now ? std::optional(due) : std::nullopt;
}

bool ProxyStream::end_is_due() const {
  return sender_ended_ && !finished_ && chunks_.empty() && traffic_.mode == Traffic::Mode::forward;
}

void ProxyStream::finish() {
  finished_ = true;
  chunks_.clear();
  kept_ = 0;
}

}  // namespace dlock::rig
