#include "backends/postgres/wake_ups.hpp"

#include <algorithm>
#include <utility>

#include <dlock/backoff.hpp>
#include <dlock/duration.hpp>

#include "backends/postgres/identifier.hpp"
#include "backends/postgres/sqlstate.hpp"

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
constexpr nanoseconds shortest_absence = seconds(30);
constexpr nanoseconds longest_absence = seconds(60);
constexpr std::size_t most_in_a_query = 500;

}  // namespace

class WakeUps::NameWatch final : public Watch {
 public:
  NameWatch(WakeUps& wake_ups, std::string name, std::uint64_t id)
      : wake_ups_(wake_ups), name_(std::move(name)), id_(id) {}
  ~NameWatch() override { wake_ups_.leave(name_, id_); }

 private:
  WakeUps& wake_ups_;
  const std::string name_;
  const std::uint64_t id_;
};

WakeUps::WakeUps(Commands& commands, const Dialling& dialling, const RowStatements& statements, std::string channel,
                 std::function<void(Failure)> deaf)
    : commands_(commands),
      dialling_(dialling),
      statements_(statements),
      channel_(std::move(channel)),
      deaf_(std::move(deaf)),
      timer_(commands.executor()),
      linger_(commands.executor()),
      come_back_(commands.executor()) {
  if (dialling_.full == nullptr) return;
  // It may be our own session that calls.
  dialling_.full->when_refused(lifetime_.guard([this] {
    if (come_back_.armed()) return;
    come_back_.arm(saturating_add(commands_.executor().now(),
                                  random_between(shortest_absence, longest_absence, commands_.executor())),
                   [this] {
                     if (!names_.empty() && !given_up_) connect();
                   });
    commands_.executor().post(lifetime_.guard([this] { disconnect(); }));
  }));
}

WakeUps::~WakeUps() = default;

// --- Who waits -------------------------------------------------------------------------------------------------------

std::unique_ptr<Watch> WakeUps::watch(const std::string& name, std::function<void()> changed) {
  if (!given_up_ && commands_.server().pooled) {
    give_up({errc::unsupported, commands_.server().endpoint +
                                    ": there is a pooler in front of the server, so waiters are not woken when a lock "
                                    "is released; they find out by asking (more often with pooler=transaction)"});
  }
  if (given_up_) return nullptr;
  const std::uint64_t id = ++last_id_;
  Name& entry = names_[name];
  entry.watchers.push_back({.id = id, .changed = std::move(changed)});
  linger_.disarm();
  if (!come_back_.armed()) connect();
  // For the others it has been marked, or is about to be.
  const bool marked = entry.watchers.size() > 1 && entry.unmarked == 0;
  if (listening_ && !marked) mark_at(name, commands_.executor().now());
  return std::make_unique<NameWatch>(*this, name, id);
}

void WakeUps::leave(const std::string& name, std::uint64_t id) {
  const auto found = names_.find(name);
  if (found == names_.end()) return;
  Name& entry = found->second;
  const auto watcher = std::find_if(entry.watchers.begin(), entry.watchers.end(),
                                    [id](const Watcher& candidate) { return candidate.id == id; });
  if (watcher == entry.watchers.end()) return;
  const bool was_told = watcher == entry.watchers.begin() && std::exchange(entry.told, false);
  entry.watchers.erase(watcher);
  if (!entry.watchers.empty()) {
    // It was told, and nobody knows whether it has done anything about it.
    if (was_told) {
      commands_.executor().post(lifetime_.guard([this, name] { tell(name); }));
    }
    return;
  }
  if (entry.due) due_.erase(*entry.due);
  names_.erase(found);
  if (names_.empty() && session_) {
    linger_.arm(saturating_add(commands_.executor().now(), linger_for), [this] { disconnect(); });
  }
}

void WakeUps::taken(const std::string& name) {
  if (const auto found = names_.find(name); found != names_.end()) found->second.told = false;
}

void WakeUps::tell(const std::string& name) {
  const auto found = names_.find(name);
  if (found == names_.end()) return;
  found->second.told = true;
  const auto changed = found->second.watchers.front().changed;
  changed();  // may end its watch and those of others
}

// --- Listening -------------------------------------------------------------------------------------------------------

void WakeUps::connect() {
  if (!session_) {
    session_.emplace(commands_.executor(), dialling_, Purpose{.word = "listen"}, Upkeep::kept_up,
                     static_cast<Session::User&>(*this));
  }
  session_->want();
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
}

void WakeUps::session_notified(const std::string& channel, const std::string& payload) {
  if (channel == channel_) tell(payload);
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
  const auto found = names_.find(name);
  if (found == names_.end()) return;
  Name& entry = found->second;
  if (entry.due && at < (*entry.due)->first) {
    due_.erase(*entry.due);
    entry.due.reset();
  }
  if (!entry.due) entry.due = due_.emplace(at, name);
  arm();
}

void WakeUps::mark_all_now() {
  const TimePoint now = commands_.executor().now();
  for (const auto& [name, entry] : names_) mark_at(name, now);
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
    names_.at(names.back()).due.reset();
    due_.erase(due_.begin());
  }
  if (names.empty()) return arm();
  marking_ = true;
  Query query{.commands = {{.statement = &statements_.mark_many,
                            .params = {text_array({names.begin(), names.end()}), std::to_string(mark_for.count()),
                                       std::to_string(marked_for.count())}}}};
  query.done = lifetime_.guard(
      [this, names](const Outcome& outcome, const Results& results) { marked(names, outcome, results); });
  commands_.run(std::move(query), commands_.answer_by());
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
  std::vector<std::string> unmarked;
  for (const std::string& name : names) {
    const auto entry = names_.find(name);
    if (entry == names_.end()) continue;
    const auto found = is_marked.find(name);
    if (found != is_marked.end() && found->second) {
      entry->second.unmarked = 0;
      mark_at(name, saturating_add(outcome.sent, mark_again));
      continue;
    }
    const int doublings = std::min(entry->second.unmarked++, longest_pause_doublings);
    mark_at(name, saturating_add(now, unmarked_pause * (1 << doublings)));
    unmarked.push_back(name);
  }
  arm();
  // It is free, or was when we looked.
  const Lifetime::Watch life = lifetime_.watch();
  for (const std::string& name : unmarked) {
    tell(name);
    if (life.over()) return;
  }
}

}  // namespace dlock::postgres
