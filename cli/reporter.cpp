#include "cli/reporter.hpp"

#include "cli/output.hpp"

namespace dlock::cli {

namespace {

std::string text_of(const Failure& failure) {
  if (failure.detail.empty()) return failure.code ? failure.code.message() : std::string();
  return failure.detail;
}

}  // namespace

void Reporter::lost(const LostEvent& event) {
  const std::scoped_lock lock(mutex_);
  loss_ = text_of(event.reason);
}

void Reporter::connection(const ConnectionEvent& event) {
  const bool cut_off = event.state == ConnectionEvent::State::reconnecting;
  {
    const std::scoped_lock lock(mutex_);
    if (cut_off_ == cut_off) return;
    cut_off_ = cut_off;
  }
  if (quiet_) return;
  say(cut_off ? "no connection to the lock service, trying again: " + text_of(event.reason)
              : "connected to the lock service again");
}

void Reporter::warning(const WarningEvent& event) {
  if (!quiet_) say("warning: " + text_of(event.reason));
}

std::string Reporter::loss_reason() const {
  const std::scoped_lock lock(mutex_);
  return loss_.empty() ? loss_ : ": " + loss_;
}

}  // namespace dlock::cli
