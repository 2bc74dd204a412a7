#include "cli/reporter.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "cli/lock_report.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"

namespace dlock::cli {

namespace {

// Limits texts that differ each time; beyond this, old ones may be repeated.
constexpr std::size_t max_remembered = 32;

std::string text_of(const Failure& failure) {
  if (failure.detail.empty()) return failure.code ? failure.code.message() : std::string();
  return failure.detail;
}

bool out_of_reach(const Failure& failure) {
  return failure.code == errc::unavailable || failure.code == errc::ambiguous;
}

std::string since(const LockInfo& info, const Capabilities& capabilities) {
  const auto taken = taken_at(info, capabilities);
  const auto now = std::chrono::system_clock::now();
  if (!taken || *taken > now) return {};  // the service's clock is ahead of this one
  return fmt::format(" (for {})", for_people(now - *taken));
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

void Reporter::acquired(const AcquiredEvent& event) {
  const std::scoped_lock lock(mutex_);
  renewal_failure_.clear();
  forget_trouble_with_locks();
  reached_ = true;
  trying_ = false;
  renewed_[event.name] = now_();
  say_if_verbose(
      fmt::format("took \"{}\" with token {} after {}", event.name, event.token.value(), for_people(event.wait)));
  ++taken_;
  taken_changed_.notify_all();
}

void Reporter::await_taken(std::size_t locks) {
  std::unique_lock lock(mutex_);
  if (speech_ != Speech::everything) return;
  (void)taken_changed_.wait_for(lock, std::chrono::seconds(1), [&] { return taken_ >= locks; });
  taken_ -= std::min(taken_, locks);
}

void Reporter::released(const ReleasedEvent& event) {
  const std::scoped_lock lock(mutex_);
  renewed_.erase(event.name);
  if (event.confirmed) say_if_verbose(fmt::format("freed \"{}\" after {}", event.name, for_people(event.hold)));
}

void Reporter::renewed(const RenewedEvent& event) {
  const std::scoped_lock lock(mutex_);
  renewal_failure_.clear();
  forget_trouble_with_locks();
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
  if (refuses && !reached_) return;  // it ends the command, which reports it
  // Some services report the failed wait first, and then the connection.
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

bool Reporter::reached() const {
  const std::scoped_lock lock(mutex_);
  return reached_;
}

std::string Reporter::last_failure() const {
  const std::scoped_lock lock(mutex_);
  return last_failure_;
}

std::string Reporter::loss_of(const std::string& name) const {
  const std::scoped_lock lock(mutex_);
  const std::string text = fmt::format("lost \"{}\"", name);
  const std::string& failed = renewal_failure_;
  if (loss_.empty()) return failed.empty() ? text : text + ": its lease could not be renewed: " + failed;
  return text + ": " + loss_ + (failed.empty() ? "" : " (last failed renewal: " + failed + ")");
}

void Reporter::explain_wait(const Client& client, const std::vector<std::string>& names, LockKind kind) {
  const Capabilities capabilities = client.capabilities();
  const std::scoped_lock lock(mutex_);
  // dlock has to wait for the answer before it can exit, so it does not query a service that has not answered yet.
  const bool answers = capabilities.can_inspect && (capabilities.scope != Scope::network || connected_);
  if (asking_ || !answers) return say("waiting for " + quoted(names));
  asking_ = true;  // an earlier thread, if any, does nothing more
  try {
    asker_ = std::jthread([this, &client, names, kind, wait = waits_] { ask(client, names, kind, wait); });
  } catch (const std::system_error&) {  // no more threads: the wait continues nevertheless
    asking_ = false;
    say("waiting for " + quoted(names));
  }
}

void Reporter::ask(const Client& client, const std::vector<std::string>& names, LockKind kind, std::uint64_t wait) {
  std::string text = "waiting for " + quoted(names);
  const auto is_over = [&] {
    const std::scoped_lock lock(mutex_);
    return waits_ != wait;
  };
  try {
    for (std::size_t i = 0; i < names.size() && !is_over(); ++i) {
      const LockInfo info = client.inspect(names[i], kind);
      if (info.holder.empty() || info.holder == client.holder()) continue;  // of several, the first is its own
      text += names.size() == 1 ? ", held by " : fmt::format(": \"{}\" is held by ", names[i]);
      text += info.holder + since(info, client.capabilities());
      if (info.holders.size() > 1) text += fmt::format(" and {} more", info.holders.size() - 1);
      break;
    }
  } catch (const std::exception&) {
    // The wait itself reports problems of the service.
  }
  const std::scoped_lock lock(mutex_);
  asking_ = false;
  if (waits_ == wait) say(text);
}

void Reporter::end_wait() {
  const std::scoped_lock lock(mutex_);
  ++waits_;
}

void Reporter::finish_asking() {
  if (asker_.joinable()) asker_.join();
}

}  // namespace dlock::cli
