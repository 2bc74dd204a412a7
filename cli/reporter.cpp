#include "cli/reporter.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/text.hpp"

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
  if (speech_ == Speech::all || speech_ == Speech::everything) say(text);
}

void Reporter::say_if_verbose(const std::string& text) const {
  if (speech_ == Speech::everything) say(text);
}

void Reporter::say_out_of_reach(const std::string& meaning, const std::string& why) {
  const bool first = !std::exchange(out_of_reach_, true);
  if (trying_) return;
  say_unless_quiet(meaning + why);
  if (speech_ == Speech::errors && first) say("cannot reach the lock service, trying again: " + why);
}

void Reporter::forget_trouble_with_locks() {
  out_of_reach_ = false;
  std::erase_if(said_, [](const auto& warning) { return !warning.first.empty(); });
}

void Reporter::renewals_work() {
  const std::scoped_lock lock(mutex_);
  renewal_failure_.clear();
  forget_trouble_with_locks();
}

void Reporter::acquired(const AcquiredEvent& event) {
  renewals_work();
  const std::scoped_lock lock(mutex_);
  reached_ = true;
  trying_ = false;
  renewed_[event.name] = now_();
  say_if_verbose(
      fmt::format("took \"{}\" with token {} after {}", event.name, event.token.value(), for_people(event.wait)));
}

void Reporter::released(const ReleasedEvent& event) {
  const std::scoped_lock lock(mutex_);
  renewed_.erase(event.name);
  if (event.confirmed) say_if_verbose(fmt::format("freed \"{}\" after {}", event.name, for_people(event.hold)));
}

void Reporter::renewed(const RenewedEvent& event) {
  renewals_work();
  const std::scoped_lock lock(mutex_);
  const TimePoint now = now_();
  const auto pause = now - std::exchange(renewed_.try_emplace(event.name, now).first->second, now);
  if (pause <= lease_ / 2) return;
  say_if_verbose(fmt::format("renewed \"{}\" late: {} after the time before, of a lease of {}; answered after {}",
                             event.name, for_people(pause), for_people(lease_), for_people(event.latency)));
}

void Reporter::expect_renewals(std::chrono::nanoseconds lease) {
  const std::scoped_lock lock(mutex_);
  lease_ = lease;
}

void Reporter::lost(const LostEvent& event) {
  const std::scoped_lock lock(mutex_);
  loss_ = text_of(event.reason);
}

void Reporter::connection(const ConnectionEvent& event) {
  const bool cut_off = event.state == ConnectionEvent::State::reconnecting;
  const std::scoped_lock lock(mutex_);
  connected_ = !cut_off;
  if (!cut_off) {
    if (!std::exchange(reached_, true)) say_if_verbose("connected to the lock service");
    forget_trouble_with_locks();
    refused_ = false;
    if (std::exchange(cut_off_, false) && !trying_) {
      say_unless_quiet("connected to the lock service again");
    }
    return;
  }
  const std::string text = text_of(event.reason);
  const bool refuses = !out_of_reach(event.reason) && !std::exchange(refused_, true);
  if (refuses || !refused_) last_failure_ = text;
  if (std::exchange(cut_off_, true) && !refuses) return;
  if (refuses && !reached_) return;  // it ends the command, which says it
  // Some services report the wait that fails first, and then the connection.
  const bool known = std::any_of(said_.begin(), said_.end(), [&](const auto& said) { return said.second == text; });
  if (!known) say_out_of_reach("no connection to the lock service, trying again: ", text);
}

void Reporter::warning(const WarningEvent& event) {
  const std::string text = text_of(event.reason);
  const std::scoped_lock lock(mutex_);
  const bool unreached = !event.name.empty() && out_of_reach(event.reason);
  if (!event.name.empty()) renewal_failure_ = text;
  if (unreached && !refused_) last_failure_ = text;
  if (unreached && cut_off_) return;
  if (said_.size() >= max_remembered) said_.clear();
  if (!said_.emplace(event.name, text).second) return;
  if (unreached) {
    say_out_of_reach("warning: ", text);
  } else {
    say_unless_quiet("warning: " + text);
  }
}

void Reporter::fall_silent() {
  const std::scoped_lock lock(mutex_);
  speech_ = Speech::nothing;
}

bool Reporter::connected() const {
  const std::scoped_lock lock(mutex_);
  return connected_;
}

bool Reporter::reached() const {
  const std::scoped_lock lock(mutex_);
  return reached_;
}

std::string Reporter::last_failure() const {
  const std::scoped_lock lock(mutex_);
  return last_failure_;
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
