#include "backends/common/sql/batch_window.hpp"

#include <algorithm>
#include <cmath>

#include <dlock/duration.hpp>

namespace dlock::sql {

namespace {

constexpr std::chrono::nanoseconds longest = std::chrono::milliseconds(1);

}  // namespace

void BatchWindow::answered(std::size_t together, TimePoint sent, TimePoint now) {
  if (answered_ > 0) {
    const double came_back = static_cast<double>(std::min(asked_, answered_)) / static_cast<double>(answered_);
    share_ = (share_ + came_back) / 2;
  }
  answered_ = together;
  asked_ = 0;
  expected_ = static_cast<std::size_t>(std::lround(share_ * static_cast<double>(together)));
  end_ = saturating_add(now, std::min(longest, (now - sent) / 2));
}

void BatchWindow::asked(TimePoint now) {
  if (now < end_) ++asked_;
}

std::optional<TimePoint> BatchWindow::waits_until(TimePoint now) const {
  if (asked_ >= expected_ || now >= end_) return std::nullopt;
  return end_;
}

}  // namespace dlock::sql
