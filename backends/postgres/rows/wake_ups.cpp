#include "backends/postgres/rows/wake_ups.hpp"

#include <algorithm>
#include <array>
#include <charconv>
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
// How long the client named in a notification is left alone with the lock. It and the others are told at the same time,
// so this need not cover a round trip.
constexpr nanoseconds shortest_patience = milliseconds(5);
constexpr nanoseconds longest_patience = milliseconds(10);
constexpr nanoseconds patience_with_all = milliseconds(100);
constexpr nanoseconds queue_again_after = milliseconds(3);

// What this client is called in queues.
std::string new_id(std::uint64_t random) {
  std::array<char, 16> digits{};
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), random, 16).ptr;
  return {digits.data(), end};
}

}  // namespace

WakeUps::WakeUps(Commands& commands, const Dialling& dialling, RowSql& sql, LockKind kind, std::string channel,
                 std::function<void(Failure)> deaf)
    : commands_(commands),
      dialling_(dialling),
      sql_(sql),
      space_(kind),
      channel_(std::move(channel)),
      deaf_(std::move(deaf)),
      watchers_(commands.executor(), [this](const std::string& name) { nobody_waits_for(name); }),
      id_(new_id(commands.executor().random())),
      late_timer_(commands.executor()),
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
  const bool marked = marks_[name].missed == 0 && watchers_.count(name) > 1;
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
  cancel_late_look(name);
  if (found->second.queues) leave_queue(name);
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
  const std::size_t tab = payload.find('\t');
  const bool names_a_client = tab != std::string::npos;
  const std::string name = names_a_client ? payload.substr(tab + 1) : payload;
  const auto mark = marks_.find(name);
  if (mark == marks_.end()) return;
  if (names_a_client) {
    if (payload.substr(0, tab) != id_) return look_late(name);
    // We have had our turn; by then the lock is taken again, and those of us who still wait want another one.
    mark->second.queues = false;
    mark_at(name, saturating_add(commands_.executor().now(), queue_again_after));
  }
  cancel_late_look(name);
  tell(name);
}

// Another client is to look first. If no news of that comes, it is no longer there, or does not wait any more. And
// if others are named again and again, we may have lost our place.
void WakeUps::look_late(const std::string& name) {
  Mark& mark = marks_.at(name);
  const TimePoint now = commands_.executor().now();
  if (!mark.look) mark.named_others_since = now;
  cancel_late_look(name);
  const nanoseconds patience = random_between(shortest_patience, longest_patience, commands_.executor());
  const TimePoint at_the_latest = std::max(saturating_add(mark.named_others_since, patience_with_all), now);
  mark.look = late_.emplace(std::min(saturating_add(now, patience), at_the_latest), name);
  late_timer_.arm(late_.begin()->first, [this] { look_where_it_is_late(); });
}

void WakeUps::cancel_late_look(const std::string& name) {
  if (auto& look = marks_.at(name).look) late_.erase(*std::exchange(look, std::nullopt));
}

void WakeUps::look_where_it_is_late() {
  const TimePoint now = commands_.executor().now();
  const Lifetime::Watch life = lifetime_.watch();
  while (!late_.empty() && late_.begin()->first <= now) {
    const std::string name = late_.begin()->second;
    const bool in_doubt = now >= saturating_add(marks_.at(name).named_others_since, patience_with_all);
    cancel_late_look(name);
    if (in_doubt) mark_at(name, now);
    watchers_.tell_first(name);
    if (life.over()) return;
  }
  if (!late_.empty()) late_timer_.arm(late_.begin()->first, [this] { look_where_it_is_late(); });
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

// It waits no longer, and has not been named: the next in line would wait for it in vain, though not for long.
void WakeUps::leave_queue(const std::string& name) {
  Query query{.commands = {{.statement = &sql_.use().leave_many, .params = {text_array({name}), id_}}}};
  commands_.run(std::move(query), commands_.answer_by(), MissingSchema::refuse, true);
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
  Query query{.commands = {{.statement = &sql_.use().mark_many,
                            .params = {text_array({names.begin(), names.end()}), std::to_string(mark_for.count()),
                                       std::to_string(marked_for.count()), id_}}}};
  query.done =
      lifetime_.guard([this, names, with_queue = sql_.has_queue()](const Outcome& outcome, const Results& results) {
        marked(names, with_queue, outcome, results);
      });
  commands_.run(std::move(query), commands_.answer_by(), MissingSchema::make, true);
}

void WakeUps::marked(const std::vector<std::string>& names, bool with_queue, const Outcome& outcome,
                     const Results& results) {
  marking_ = false;
  const TimePoint now = commands_.executor().now();
  if (outcome.problem != Problem::none || results.empty()) {
    const nanoseconds pause = sql_.does_without(outcome, with_queue) ? nanoseconds(0) : after_failure;
    for (const std::string& name : names) mark_at(name, saturating_add(now, pause));
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
    if (mark == marks_.end()) {
      if (found != is_marked.end() && found->second && with_queue) leave_queue(name);
      continue;
    }
    if (found != is_marked.end() && found->second) {
      mark->second.missed = 0;
      mark->second.queues = with_queue;
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
