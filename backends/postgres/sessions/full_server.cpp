#include "backends/postgres/sessions/full_server.hpp"

#include <algorithm>

#include <dlock/duration.hpp>
#include <dlock/spi/backoff.hpp>

namespace dlock::postgres {

using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

constexpr nanoseconds keeps_away_first = seconds(1);
constexpr nanoseconds keeps_away_longest = seconds(10);
// A server that has refused no client for so long has room again.
constexpr nanoseconds remembers_for = seconds(30);
static_assert(remembers_for > 2 * keeps_away_longest);

}  // namespace

bool FullServer::recently() const {
  return last_refusal_ && executor_.now() < saturating_add(*last_refusal_, remembers_for);
}

nanoseconds FullServer::pause() const {
  return random_between(at_most_ / 2, at_most_, executor_);
}

void FullServer::refused(const Failure& why) {
  const TimePoint now = executor_.now();
  if (!recently()) {
    at_most_ = keeps_away_first;
    next_ = saturating_add(now, pause());
  } else if (now >= next_) {  // else it is another connection of the same moment
    at_most_ = std::min(2 * at_most_, keeps_away_longest);
    next_ = saturating_add(now, pause());
  }
  last_refusal_ = now;
  why_ = why;
  for (const auto& told : told_) told();
}

void FullServer::looked() {
  next_ = std::max(next_, saturating_add(executor_.now(), pause()));
}

}  // namespace dlock::postgres
