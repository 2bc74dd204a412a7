#include "cli/held.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <optional>

#include "cli/system.hpp"

namespace dlock::cli {

std::vector<const Lease*> Held::each() const {
  if (const auto* lease = std::get_if<Lease>(&leases_)) return {lease};
  const auto& several = std::get<MultiLease>(leases_);
  std::vector<const Lease*> each;
  for (std::size_t i = 0; i < several.size(); ++i) each.push_back(&several[i]);
  return each;
}

std::vector<std::uint64_t> Held::tokens() const {
  std::vector<std::uint64_t> tokens;
  for (const Lease* lease : each()) tokens.push_back(lease->token().value());
  return tokens;
}

std::string Held::first_to_go() const {
  const auto end = [](const Lease* lease) { return lease->held() ? lease->valid_until() : TimePoint::min(); };
  const std::vector<const Lease*> leases = each();
  return (*std::ranges::min_element(leases, {}, end))->name();
}

Kept keep(const Held& held, TimePoint until, SignalQueue& signals, int other, int leash) {
  const Event lost_event;
  const std::stop_token lost = held.lost();
  const std::stop_callback on_lost(lost, [&lost_event] { lost_event.notify(); });
  Alarm alarm;
  alarm.set(until);
  for (bool other_ready = false, leash_ready = false;;) {
    while (const std::optional<int> signal = signals.next()) {
      if (SignalQueue::ends(*signal)) return {.reason = Kept::signal, .by = *signal};
      if (*signal == SIGTSTP) (void)signals.stop_job();  // where it cannot stop, TSTP has no effect, as usual
    }
    if (lost.stop_requested()) return {.reason = Kept::lost};
    if (LeaseClock::now() >= until) return {.reason = Kept::until};
    if (leash_ready) return {.reason = Kept::leash};
    if (other_ready) return {.reason = Kept::other};
    std::array sources{pollfd{.fd = signals.fd(), .events = POLLIN, .revents = 0},
                       pollfd{.fd = lost_event.fd(), .events = POLLIN, .revents = 0},
                       pollfd{.fd = alarm.fd(), .events = POLLIN, .revents = 0},
                       pollfd{.fd = leash, .events = POLLIN, .revents = 0},
                       pollfd{.fd = other, .events = POLLIN, .revents = 0}};
    if (::poll(sources.data(), sources.size(), -1) < 0 && errno != EINTR) check(-1, "poll");
    leash_ready = sources[3].revents != 0;
    other_ready = sources.back().revents != 0;
  }
}

}  // namespace dlock::cli
