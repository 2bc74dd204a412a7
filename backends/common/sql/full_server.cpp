#include "backends/common/sql/full_server.hpp"

#include <algorithm>
#include <chrono>

#include <dlock/duration.hpp>
#include <dlock/spi/backoff.hpp>

namespace dlock::sql {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds holder_pauses(250);
constexpr seconds others_pause(10);
// A server that has not refused a connection for this time has room again.
constexpr seconds remembers_for(30);
static_assert(remembers_for > 2 * others_pause);

}  // namespace

void FullServer::refused(const Failure& why) {
  last_refusal_ = executor_.now();
  why_ = why;
  keep_away();
}

void FullServer::keep_away() {
  const TimePoint now = executor_.now();
  if (now < next_) return;  // another connection was refused at the same time
  next_ = saturating_add(now, random_between(others_pause / 2, others_pause, executor_));
}

bool FullServer::makes_room() const {
  if (!last_refusal_ || executor_.now() >= saturating_add(*last_refusal_, remembers_for)) return false;
  return std::none_of(holds_.begin(), holds_.end(), [](const auto& holds) { return holds(); });
}

TimePoint FullServer::next() const {
  if (makes_room()) return next_;
  return saturating_add(executor_.now(), random_between(holder_pauses / 2, holder_pauses, executor_));
}

}  // namespace dlock::sql
