#include "backends/postgres/rows/wake_ups.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <dlock/duration.hpp>
#include <dlock/spi/backoff.hpp>

#include "backends/postgres/sql/identifier.hpp"

namespace dlock::postgres {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

constexpr nanoseconds mark_again = seconds(7);
static_assert(mark_again < RowCommands::marked_for && 2 * RowCommands::marked_for > RowCommands::mark_for);
constexpr nanoseconds unmarked_pause = milliseconds(10);
constexpr int longest_pause_doublings = 7;     // 1.28 s
constexpr int longest_changing_doublings = 3;  // 80 ms
constexpr nanoseconds after_failure = seconds(1);
constexpr nanoseconds linger_for = seconds(60);
// A client that competes with others has mostly been notified of as many releases as there are others. If the longest
// pause is half the time of so many releases, few clients try between two releases. Limits keep the pause short.
constexpr nanoseconds longest_gap = milliseconds(4);
constexpr int most_releases = 50;
// One may be this client's own release, if it waits again before the notification arrives.
constexpr int releases_without_pause = 2;

}  // namespace

WakeUps::WakeUps(Commands& commands, const Dialling& dialling, const RowCommands& statements,
                 std::function<void(Failure)> deaf)
    : commands_(commands),
      dialling_(dialling),
      statements_(statements),
      deaf_(std::move(deaf)),
      watchers_(commands.executor(), [this](const std::string& name) { nobody_waits_for(name); }),
      batch_(commands, statements),
      linger_(commands.executor()) {}

WakeUps::~WakeUps() = default;

// --- Waiters ---------------------------------------------------------------------------------------------------------

std::unique_ptr<Watch> WakeUps::watch(const std::string& name, const OwnerId* /*waiter*/,
                                      std::function<void()> changed) {
  if (!given_up_ && commands_.server().pooled) {
    give_up({errc::unsupported, commands_.server().endpoint +
                                    ": there is a pooler in front of the server, so waiters are not woken when a lock "
                                    "is released; they poll instead (more often with pooler=transaction)"});
  }
  if (given_up_) return nullptr;
  auto watch = watchers_.watch(name, std::move(changed));
  linger_.disarm();
  connect();
  // If other waiters were there before, the lock is marked, or is about to be.
  const auto [mark, fresh] = marks_.try_emplace(name, commands_.executor());
  if (fresh || mark->second.missed > 0) this->mark(name);
  return watch;
}

void WakeUps::tell(const std::string& name) {
  if (statements_.kind() == LockKind::lock) return watchers_.tell_first(name);
  watchers_.tell_all(name);
}

void WakeUps::nobody_waits_for(const std::string& name) {
  marks_.erase(name);
  if (watchers_.empty() && session_) {
    linger_.arm(saturating_add(commands_.executor().now(), linger_for), [this] { disconnect(); });
  }
}

// --- Listening -------------------------------------------------------------------------------------------------------

void WakeUps::connect() {
  if (!session_) {
    session_.emplace(commands_.executor(), dialling_, Purpose{.word = "listen"}, Upkeep::kept_up,
                     static_cast<Session::User&>(*this));
  }
  session_->want(true);
}

void WakeUps::disconnect() {
  listening_ = false;
  session_.reset();
}

void WakeUps::session_ready() {
  if (session_->server().pooled) {
    return give_up({errc::unsupported, session_->server().endpoint +
                                           ": there is a pooler in front of the server, so waiters are not woken"});
  }
  listen();
}

void WakeUps::listen() {
  Query query{.commands = {{.text = "LISTEN " + quote_identifier(statements_.channel())}},
              .done = lifetime_.guard([this](const Outcome& outcome, const Results&) {
                if (outcome.problem == Problem::refused) {
                  return session_->break_off(commands_.dialect().failure_of(outcome));
                }
                if (outcome.problem != Problem::none) return;
                listening_ = true;
                for (const auto& [name, mark] : marks_) this->mark(name);
              })};
  (void)session_->request(std::move(query), commands_.answer_by());
}

void WakeUps::session_down(const Failure& /*why*/, bool /*was_ready*/) {
  listening_ = false;
  for (auto& [name, mark] : marks_) mark.good = false;
}

void WakeUps::session_left() {
  session_down({}, true);
  session_->want(true);
}

void WakeUps::session_notified(const std::string& channel, const std::string& payload) {
  if (channel != statements_.channel()) return;
  auto found = marks_.find(payload);
  if (found == marks_.end()) found = marks_.find(payload.substr(payload.find('\t') + 1));
  if (found == marks_.end()) return;
  const std::string name = found->first;  // a waiter that is woken may be the last one, and erase it
  Mark& mark = found->second;
  if (statements_.kind() != LockKind::lock) return watchers_.tell_all(name);
  Executor& executor = commands_.executor();
  const nanoseconds gap = std::min(executor.now() - std::exchange(mark.last_release, executor.now()), longest_gap);
  mark.gap = (mark.gap + gap) / 2;
  mark.releases = std::min(mark.releases + 1, most_releases);
  if (mark.look.armed()) return;
  if (mark.releases <= releases_without_pause) return watchers_.tell_first(name);
  const nanoseconds at_most = mark.releases * mark.gap / 2;
  mark.look.arm(saturating_add(executor.now(), random_between(nanoseconds(0), at_most, executor)),
                [this, name] { watchers_.tell_first(name); });
}

void WakeUps::taken(const std::string& name, const OwnerId& /*owner*/) {
  if (const auto found = marks_.find(name); found != marks_.end()) {
    found->second.releases = 0;
    found->second.look.disarm();
  }
  watchers_.taken(name);
}

void WakeUps::give_up(const Failure& why) {
  if (std::exchange(given_up_, true)) return;
  // In a later task: the session is on the call stack.
  commands_.executor().post(lifetime_.guard([this, why] {
    disconnect();
    deaf_(why);
  }));
}

// --- Marks -----------------------------------------------------------------------------------------------------------

void WakeUps::mark(const std::string& name) {
  const auto found = marks_.find(name);
  if (!listening_ || found->second.asked) return;
  found->second.asked = true;
  batch_.ask(
      {.kind = RowRequest::Kind::mark, .name = name, .owner = {}, .deadline = commands_.answer_by(), .patient = true},
      [this, name](const RowAnswer& answer) { marked(name, answer); });
}

void WakeUps::mark_after(const std::string& name, nanoseconds time) {
  marks_.at(name).again.arm(saturating_add(commands_.executor().now(), time), [this, name] { mark(name); });
}

void WakeUps::marked(const std::string& name, const RowAnswer& answer) {
  const auto found = marks_.find(name);
  if (found == marks_.end()) return;
  Mark& mark = found->second;
  mark.asked = false;
  if (answer.status == RowAnswer::Status::failed) return mark_after(name, after_failure);
  if (answer.status == RowAnswer::Status::yes) {
    mark.missed = 0;
    mark_after(name, answer.sent + mark_again - commands_.executor().now());
    // Other clients may have got or released it since the waiters last tried.
    if (!std::exchange(mark.good, listening_) && statements_.kind() != LockKind::lock) tell(name);
    return;
  }
  const int missed = mark.missed++;
  if (answer.status == RowAnswer::Status::again) {
    const nanoseconds pause = unmarked_pause * (1 << std::min(missed, longest_changing_doublings));
    return mark_after(name, missed == 0 ? nanoseconds(0) : pause);
  }
  // It is free, or was.
  mark_after(name, unmarked_pause * (1 << std::min(missed, longest_pause_doublings)));
  tell(name);
}

}  // namespace dlock::postgres
