#include "backends/postgres/rows/wake_ups.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <dlock/duration.hpp>
#include <dlock/spi/backoff.hpp>

#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/sqlstate.hpp"

namespace dlock::postgres {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

// A mark is good for mark_for, and for at least marked_for when we go by it.
constexpr milliseconds mark_for = seconds(15);
constexpr milliseconds marked_for = seconds(8);
constexpr nanoseconds mark_again = seconds(7);
static_assert(mark_again < marked_for && 2 * marked_for > mark_for);

constexpr nanoseconds unmarked_pause = milliseconds(10);
constexpr int longest_pause_doublings = 7;  // 1.28 s
constexpr nanoseconds after_failure = seconds(1);
constexpr nanoseconds linger_for = seconds(60);
constexpr std::size_t most_in_a_query = 500;
// About as long as a client that looks takes to find out.
constexpr nanoseconds pause_per_release = milliseconds(1);
constexpr int most_releases = 20;
// One may be this client's own release, of which it hears when it waits already.
constexpr int releases_without_pause = 2;

}  // namespace

WakeUps::WakeUps(Commands& commands, const Dialling& dialling, const RowCommands& statements, LockKind kind,
                 std::string channel, std::function<void(Failure)> deaf)
    : commands_(commands),
      dialling_(dialling),
      statements_(statements),
      space_(kind),
      channel_(std::move(channel)),
      deaf_(std::move(deaf)),
      watchers_(commands.executor(), [this](const std::string& name) { nobody_waits_for(name); }),
      timer_(commands.executor()),
      linger_(commands.executor()) {}

WakeUps::~WakeUps() = default;

// --- Who waits -------------------------------------------------------------------------------------------------------

std::unique_ptr<Watch> WakeUps::watch(const std::string& name, std::function<void()> changed) {
  if (!given_up_ && commands_.server().pooled) {
    give_up({errc::unsupported, commands_.server().endpoint +
                                    ": there is a pooler in front of the server, so waiters are not woken when a lock "
                                    "is released; they poll instead (more often with pooler=transaction)"});
  }
  if (given_up_) return nullptr;
  auto watch = watchers_.watch(name, std::move(changed));
  linger_.disarm();
  connect();
  // For the others it has been marked, or is about to be.
  const Mark& mark = marks_.try_emplace(name, commands_.executor()).first->second;
  const bool marked = mark.missed == 0 && watchers_.count(name) > 1;
  if (listening_ && !marked) mark_at(name, commands_.executor().now());
  return watch;
}

void WakeUps::tell(const std::string& name) {
  if (space_ == LockKind::lock) return watchers_.tell_first(name);
  watchers_.tell_all(name);
}

void WakeUps::nobody_waits_for(const std::string& name) {
  const auto found = marks_.find(name);
  if (found->second.due) due_.erase(*found->second.due);
  marks_.erase(found);
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
  Query query{.commands = {{.text = "LISTEN " + quote_identifier(channel_)}},
              .done = lifetime_.guard([this](const Outcome& outcome, const Results&) {
                if (outcome.problem == Problem::refused) {
                  return session_->break_off(failure_of(outcome, commands_.options().schema));
                }
                if (outcome.problem != Problem::none) return;
                listening_ = true;
                mark_all_now();
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
  if (channel != channel_) return;
  auto found = marks_.find(payload);
  if (found == marks_.end()) found = marks_.find(payload.substr(payload.find('\t') + 1));
  if (found == marks_.end()) return;
  const std::string name = found->first;  // those that are told may be the last ones that wait for it
  Mark& mark = found->second;
  if (space_ != LockKind::lock) return watchers_.tell_all(name);
  if (mark.look.armed()) return;
  mark.releases = std::min(mark.releases + 1, most_releases);
  if (mark.releases <= releases_without_pause) return watchers_.tell_first(name);
  const nanoseconds at_most = pause_per_release * mark.releases;
  Executor& executor = commands_.executor();
  mark.look.arm(saturating_add(executor.now(), random_between(nanoseconds(0), at_most, executor)),
                [this, name] { watchers_.tell_first(name); });
}

void WakeUps::taken(const std::string& name) {
  if (const auto found = marks_.find(name); found != marks_.end()) {
    found->second.releases = 0;
    found->second.look.disarm();
  }
  watchers_.taken(name);
}

void WakeUps::give_up(const Failure& why) {
  if (std::exchange(given_up_, true)) return;
  // Not from inside the session.
  commands_.executor().post(lifetime_.guard([this, why] {
    disconnect();
    deaf_(why);
  }));
}

// --- Marks -----------------------------------------------------------------------------------------------------------

void WakeUps::mark_at(const std::string& name, TimePoint at) {
  const auto found = marks_.find(name);
  if (found == marks_.end()) return;
  Mark& mark = found->second;
  if (mark.due && at < (*mark.due)->first) {
    due_.erase(*mark.due);
    mark.due.reset();
  }
  if (!mark.due) mark.due = due_.emplace(at, name);
  arm();
}

void WakeUps::mark_all_now() {
  const TimePoint now = commands_.executor().now();
  for (const auto& [name, mark] : marks_) mark_at(name, now);
}

void WakeUps::arm() {
  if (marking_ || !listening_ || due_.empty()) return;
  timer_.arm(due_.begin()->first, [this] { mark(); });
}

void WakeUps::mark() {
  if (marking_ || !listening_) return;
  const TimePoint now = commands_.executor().now();
  std::vector<std::string> names;
  while (!due_.empty() && due_.begin()->first <= now && names.size() < most_in_a_query) {
    names.push_back(due_.begin()->second);
    marks_.at(names.back()).due.reset();
    due_.erase(due_.begin());
  }
  if (names.empty()) return arm();
  marking_ = true;
  Query query{.commands = {statements_.mark(names, mark_for, marked_for)}};
  query.done = lifetime_.guard(
      [this, names](const Outcome& outcome, const Results& results) { marked(names, outcome, results); });
  commands_.run(std::move(query), commands_.answer_by(), MissingSchema::make, true);
}

void WakeUps::marked(const std::vector<std::string>& names, const Outcome& outcome, const Results& results) {
  marking_ = false;
  const TimePoint now = commands_.executor().now();
  if (outcome.problem != Problem::none || results.empty()) {
    for (const std::string& name : names) mark_at(name, saturating_add(now, after_failure));
    return arm();
  }
  std::unordered_map<std::string, bool> is_marked;
  for (std::size_t row = 0; row < results[0].size(); ++row) {
    is_marked.emplace(results[0].text(row, 0), results[0].flag(row, 1));
  }
  std::vector<std::string> to_look;
  for (const std::string& name : names) {
    const auto mark = marks_.find(name);
    const auto found = is_marked.find(name);
    if (mark == marks_.end()) continue;
    if (found != is_marked.end() && found->second) {
      mark->second.missed = 0;
      // Others may have entered it, or a client got it, since they looked.
      if (!std::exchange(mark->second.good, true) && space_ != LockKind::lock) to_look.push_back(name);
      mark_at(name, saturating_add(outcome.sent, mark_again));
      continue;
    }
    const int doublings = std::min(mark->second.missed++, longest_pause_doublings);
    mark_at(name, saturating_add(now, unmarked_pause * (1 << doublings)));
    to_look.push_back(name);
  }
  arm();
  // Those that are not marked are free, or were when we looked.
  const Lifetime::Watch life = lifetime_.watch();
  for (const std::string& name : to_look) {
    tell(name);
    if (life.over()) return;
  }
}

}  // namespace dlock::postgres
