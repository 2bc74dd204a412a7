#include "cli/reporter.hpp"

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "cli/output.hpp"

namespace dlock::cli {

namespace {

// Texts that differ each time must not pile up; beyond this, old ones may be said again.
constexpr std::size_t max_remembered = 32;

std::string text_of(const Failure& failure) {
  if (failure.detail.empty()) return failure.code ? failure.code.message() : std::string();
  return failure.detail;
}

bool out_of_reach(const Failure& failure) {
  return failure.code == errc::unavailable || failure.code == errc::ambiguous;
}

}  // namespace

void Reporter::say_unless_quiet(const std::string& text) const {
  if (!quiet_) say(text);
}

void Reporter::forget_trouble_with_locks() {
  std::erase_if(said_, [](const auto& warning) { return !warning.first.empty(); });
}

void Reporter::renewals_work() {
  const std::scoped_lock lock(mutex_);
  renewal_failure_.clear();
  forget_trouble_with_locks();
}

void Reporter::acquired(const AcquiredEvent& /*event*/) {
  renewals_work();
}

void Reporter::renewed(const RenewedEvent& /*event*/) {
  renewals_work();
}

void Reporter::lost(const LostEvent& event) {
  const std::scoped_lock lock(mutex_);
  loss_ = text_of(event.reason);
}

void Reporter::connection(const ConnectionEvent& event) {
  const bool cut_off = event.state == ConnectionEvent::State::reconnecting;
  const std::scoped_lock lock(mutex_);
  connected_ = !cut_off;
  if (!cut_off) forget_trouble_with_locks();
  if (std::exchange(cut_off_, cut_off) == cut_off) return;
  say_unless_quiet(cut_off ? "no connection to the lock service, trying again: " + text_of(event.reason)
                           : "connected to the lock service again");
}

void Reporter::warning(const WarningEvent& event) {
  const std::string text = text_of(event.reason);
  const std::scoped_lock lock(mutex_);
  if (!event.name.empty()) {
    renewal_failure_ = text;
    if (cut_off_ && out_of_reach(event.reason)) return;
  }
  if (said_.size() >= max_remembered) said_.clear();
  if (said_.emplace(event.name, text).second) say_unless_quiet("warning: " + text);
}

void Reporter::fall_silent() {
  const std::scoped_lock lock(mutex_);
  quiet_ = true;
}

bool Reporter::connected() const {
  const std::scoped_lock lock(mutex_);
  return connected_;
}

std::string Reporter::loss_reason() const {
  const std::scoped_lock lock(mutex_);
  if (loss_.empty()) {
    return renewal_failure_.empty() ? std::string() : ": its lease could not be renewed: " + renewal_failure_;
  }
  return renewal_failure_.empty() ? ": " + loss_
                                  : fmt::format(": {} (last failed renewal: {})", loss_, renewal_failure_);
}

}  // namespace dlock::cli
