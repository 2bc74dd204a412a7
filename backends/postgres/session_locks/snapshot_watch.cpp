#include "backends/postgres/session_locks/snapshot_watch.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <dlock/duration.hpp>
#include <dlock/spi/backoff.hpp>

#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

constexpr nanoseconds shortest_pause = seconds(1);
constexpr nanoseconds longest_pause = seconds(2);
// The answer costs the server a look at each open transaction, and each of those may be a waiter that asks.
constexpr nanoseconds pause_per_transaction = milliseconds(20);
constexpr std::int64_t most_counted = 1500;  // the slices end by themselves by then

}  // namespace

SnapshotWatch::SnapshotWatch(Executor& executor, Waits& waits, std::function<void(Query query)> ask)
    : executor_(executor), waits_(waits), ask_(std::move(ask)), question_(waits_for_snapshots()), timer_(executor) {}

void SnapshotWatch::began() {
  if (!asking_ && !timer_.armed()) look_in(nanoseconds(0));
}

void SnapshotWatch::look_in(nanoseconds pause) {
  const nanoseconds at_least = random_between(shortest_pause, longest_pause, executor_);
  timer_.arm(saturating_add(executor_.now(), std::max(pause, at_least)), [this] { look(); });
}

void SnapshotWatch::look() {
  if (waits_.waiting() == 0) return seen_.clear();  // the next one that is let in begins anew
  asking_ = true;
  ask_({.commands = {{.statement = &question_}},
        .done =
            lifetime_.guard([this](const Outcome& outcome, const Results& results) { answered(outcome, results); })});
}

void SnapshotWatch::answered(const Outcome& outcome, const Results& results) {
  asking_ = false;
  if (outcome.problem != Problem::none || results.empty()) return look_in(nanoseconds(0));
  const Rows& rows = results.front();
  std::set<std::string> waiting;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (!rows.is_null(row, 1)) waiting.insert(rows.text(row, 1));
  }
  const auto is_new = [this](const std::string& transaction) { return !seen_.contains(transaction); };
  // It waits for what is older than itself, so not for a wait that begins now.
  const bool any_new = std::any_of(waiting.begin(), waiting.end(), is_new);
  seen_ = std::move(waiting);
  look_in(pause_per_transaction * std::clamp<std::int64_t>(rows.number(0, 0).value_or(0), 0, most_counted));
  if (any_new) waits_.restart();
}

}  // namespace dlock::postgres
