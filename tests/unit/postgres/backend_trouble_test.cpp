// Refusals, lost answers and servers that are not there, with each strategy.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend_fixture.hpp"

namespace dlock::postgres {

namespace {

using test::failed;

class BackendTrouble : public BackendTest {
 protected:
  // Whether anything was sent in so much time that is no heartbeat.
  [[nodiscard]] std::size_t sent_within(std::chrono::nanoseconds time) {
    sent.clear();
    engine.advance(time);
    return static_cast<std::size_t>(
        std::count_if(sent.begin(), sent.end(), [](const std::string& words) { return words != "SHOW"; }));
  }
};
INSTANTIATE_TEST_SUITE_P(, BackendTrouble, testing::ValuesIn(strategies), name_of_strategy);
class BackendTroubleOfSessions : public BackendTrouble {};
INSTANTIATE_TEST_SUITE_P(, BackendTroubleOfSessions, testing::Values(Strategy::advisory, Strategy::for_update),
                         name_of_strategy);

struct Refusal {
  std::string_view state;
  std::string_view once;    // what a try says whose statement is refused once
  std::string_view always;  // and as often as it is sent
  std::string_view words = {};
  // Where a session's lock is concerned, which is known to be free after a refusal.
  std::string_view once_in_session = once;
  // What a release says that is refused once, with strategies of rows.
  std::string_view released = "released";
  bool ends_session = false;
};

constexpr auto refusals = std::to_array<Refusal>({
    // Rolled back: it is carried out again.
    {"40001", "granted", "unavailable", "40001"},
    {"40P01", "granted", "unavailable", "40P01"},
    {"57014", "granted", "unavailable", "57014"},
    {"23505", "granted", "unavailable", "23505"},
    // Over another connection.
    {"25006", "granted", "unavailable", "standby", "granted", "released", true},
    {"26000", "granted", "unavailable", "pooler", "granted", "released", true},
    // Schema made, and what was asked is carried out.
    {"42P01", "granted", "invalid", "dlock init"},
    {"3F000", "granted", "invalid", "dlock init"},
    // A try ends, a wait goes on.
    {"53200", "unavailable", "unavailable", "max_locks_per_transaction", "unavailable", "unavailable"},
    {"54000", "unavailable", "unavailable", "54000", "unavailable", "released"},
    {"58030", "unavailable", "unavailable", "58030", "unavailable", "unavailable"},
    {"XX000", "unavailable", "unavailable", "XX000", "unavailable", "unavailable"},
    {"QQ123", "unavailable", "unavailable", "QQ123", "unavailable", "unavailable"},
    // The same, and it may have been carried out.
    {"57P01", "unknown", "unknown", "", "unknown", "released", true},
    {"57P05", "unknown", "unknown", "", "unknown", "released", true},
    {"40003", "unknown", "unknown", "", "granted", "released", true},
    {"08006", "unknown", "unknown", "", "granted", "released", true},
    // Final.
    {"42501", "denied", "denied", "GRANT", "denied", "denied"},
    {"0A000", "unsupported", "unsupported", "0A000", "unsupported", "unsupported"},
    {"42601", "protocol", "protocol", "42601", "protocol", "protocol"},
    {"22012", "protocol", "protocol", "22012", "protocol", "protocol"},
    {"22021", "invalid", "invalid", "encoding", "invalid", "invalid"},
    {"22P05", "invalid", "invalid", "encoding", "invalid", "invalid"},
});

[[nodiscard]] bool is_final(const Refusal& row) {
  return row.once != "granted" && row.once != "unavailable" && row.once != "unknown";
}

TEST_P(BackendTrouble, RefusedTry_RetriesOrFails) {
  for (const Refusal& row : refusals) {
    SCOPED_TRACE(row.state);
    refuse(try_word(), std::string(row.state), 1);
    auto once = acquire("x");
    engine.advance(1s);
    EXPECT_EQ(said(*once), of_rows() ? row.once : row.once_in_session);
    EXPECT_EQ(once->busy_reports, 0);
    if (once->grant) {
      EXPECT_EQ(release(*ours, *once), "released");
    }
    expect_gone(std::move(once));

    refuse(try_word(), std::string(row.state));
    auto always = acquire("x");
    // A session's try ends before the core says that no answer came.
    engine.advance(options.response_timeout + (of_rows() ? 1ms : -1ms));
    EXPECT_EQ(said(*always), row.always);
    if (always->failure) {
      EXPECT_NE(always->failure->detail.find(row.words), std::string::npos) << always->failure->detail;
    }
    EXPECT_EQ(always->busy_reports, 0);
    const int tries = refused();
    if (row.once != "granted" && row.once_in_session != "granted") {
      EXPECT_EQ(tries, 1);
    }
    EXPECT_LT(tries, 40);
    engine.advance(5s);  // and it fails once
    heal();
    expect_gone(std::move(always));
  }
}

TEST_P(BackendTrouble, TemporaryRefusal_WaitGoesOnAndOtherLocksStay) {
  for (const Refusal& row : refusals) {
    SCOPED_TRACE(row.state);
    for (const int times : {1, 3}) {
      const auto held = row.ends_session ? nullptr : acquire("held");
      refuse(try_word(), std::string(row.state), times);
      auto attempt = acquire("x", true);
      engine.advance(2s);
      const bool schema = row.always == "invalid" && row.once == "granted";
      EXPECT_EQ(said(*attempt), schema && times > 1 ? row.always : is_final(row) ? row.once : "granted");
      heal();
      if (held) {
        EXPECT_TRUE(ours->host.losses.empty());
        EXPECT_EQ(release(*ours, *held), "released");
      }
      if (attempt->grant) {
        EXPECT_EQ(release(*ours, *attempt), "released");
      }
      expect_gone(std::move(attempt));
    }
  }
}

// Hazard: a deadlock's victim keeps its advisory locks
TEST_P(BackendTrouble, TemporaryRefusal_WaitInTheServerGoesOn) {
  for (const Refusal& row : refusals) {
    SCOPED_TRACE(row.state);
    const auto holder = taken_by_others("x");
    auto attempt = acquire("x", true);
    EXPECT_EQ(said(*attempt), "busy");
    refuse(wait_word(), std::string(row.state), 1);
    EXPECT_EQ(release(*others, *holder, 0s), "released");
    engine.advance(3s);
    EXPECT_EQ(said(*attempt), is_final(row) ? row.once : "granted");
    if (attempt->grant) {
      EXPECT_EQ(release(*ours, *attempt), "released");
    }
    heal();
    expect_gone(std::move(attempt));
  }
}

TEST_P(BackendTrouble, RefusedRelease_LeavesNothing) {
  for (const Refusal& row : refusals) {
    SCOPED_TRACE(row.state);
    auto attempt = acquire("x");
    ASSERT_TRUE(attempt->grant);
    refuse(release_word(), std::string(row.state), 1);
    const std::string answer = release(*ours, *attempt);
    // A session's lock went with the session; else it does with the connection, which is closed.
    const bool ended = row.state.starts_with("57P");
    if (of_rows()) {
      EXPECT_EQ(answer, row.released);
    } else {
      EXPECT_EQ(answer == "not ours", ended) << answer;
      EXPECT_TRUE(answer != "released" && answer != "nothing") << answer;
    }
    expect_gone(std::move(attempt));
  }
}

// Not from the answer, nor from the request of the caller that waited for a connection.
// Shows: known-end
TEST_P(BackendTrouble, Grant_LeaseCountsFromSending) {
  EXPECT_EQ(release(*others, *taken_by_others("x"), 0s), "released");  // there is a row now
  server.wire().dialling = FakeServer::Dialling::fail;
  const auto x = acquire("x", true);
  engine.advance(3s);
  EXPECT_FALSE(x->unreachable_reports.empty());
  server.wire().dialling = FakeServer::Dialling::accept;
  server.wire().records = true;
  server.wire().queries.clear();
  spoil(try_word(), Fate::hold, 1);
  for (int i = 0; i < 30 && server.wire().queries.empty(); ++i) engine.advance(100ms);
  const TimePoint asked = server.wire().queries.back().sent;
  engine.advance(1s);
  EXPECT_FALSE(x->grant);
  heal();
  engine.run();
  ASSERT_TRUE(x->grant);
  EXPECT_EQ(x->grant->valid_until, lease_valid_until(asked, of_rows() ? ours->lease : options.lease));
}

// Hazard: a waiter's snapshot keeps dead rows from being removed
TEST_P(BackendTroubleOfSessions, SliceOfWaitEnds_NextBegins) {
  const auto holder = taken_by_others("x");
  const auto attempt = acquire("x", true);
  sent.clear();
  engine.advance(25s);
  const auto waits = [this] {
    return std::count_if(sent.begin(), sent.end(),
                         [this](const std::string& words) { return words.find(wait_word()) != std::string::npos; });
  };
  EXPECT_EQ(waits(), 0) << "nothing else is asked meanwhile";
  const int dialled = server.wire().dialled;
  engine.advance(5min);
  EXPECT_GE(waits(), 5);
  EXPECT_LE(waits(), 11);
  EXPECT_EQ(server.wire().dialled, dialled);
  EXPECT_FALSE(attempt->failure || attempt->grant || !attempt->unreachable_reports.empty());
  EXPECT_EQ(release(*others, *holder, 0s), "released");
  engine.advance(2s);
  EXPECT_EQ(said(*attempt), "granted");
}

// Shows: known-end
TEST_P(BackendTroubleOfSessions, GrantAfterLongWait_IsConfirmedFirst) {
  for (const bool answered : {true, false}) {
    const auto holder = taken_by_others("x");
    auto attempt = acquire("x", true);
    engine.advance(25s);  // longer than the lease
    if (!answered) spoil("SHOW", Fate::lose_answer, 1);
    EXPECT_EQ(release(*others, *holder, 0s), "released");
    engine.run();
    EXPECT_EQ(attempt->grant.has_value(), answered);
    engine.advance(2s);
    ASSERT_TRUE(attempt->grant) << "over another connection";
    EXPECT_GT(attempt->grant->valid_until, engine.now() + options.lease / 2);
    EXPECT_LE(attempt->grant->valid_until, lease_valid_until(engine.now(), options.lease));
    EXPECT_EQ(release(*ours, *attempt), "released");
    expect_gone(std::move(attempt));
  }
}

// Hazard: a cancel that hits the next statement
TEST_P(BackendTrouble, WaiterGivesUp_LeavesNothing) {
  const auto holder = taken_by_others("x");
  auto attempt = acquire("x", true);
  engine.advance(300ms);
  attempt.reset();
  engine.advance(2s);
  EXPECT_EQ(owners("x"), 1U);
  EXPECT_EQ(sent_within(1h), 0U);
}

TEST_P(BackendTrouble, TryTimesOut_NamesTheCause) {
  refuse(try_word(), "25006", 1);
  const auto attempt = acquire("x");
  spoil(try_word(), Fate::hold);
  engine.advance(options.response_timeout + (of_rows() ? 1ms : -1ms));
  EXPECT_TRUE(failed(*attempt, of_rows() ? errc::ambiguous : errc::unavailable, "standby"));
}

TEST_P(BackendTrouble, IdleConnection_IsCheckedEveryTwoSeconds) {
  EXPECT_EQ(release(*ours, *acquire("x"), 0s), "released");
  const auto beats_within = [this](std::chrono::nanoseconds time) {
    sent.clear();
    engine.advance(time);
    return std::count(sent.begin(), sent.end(), "SHOW");
  };
  EXPECT_EQ(beats_within(1900ms), 0);
  const auto beats = beats_within(10s);
  EXPECT_TRUE(beats >= 4 && beats <= 6) << beats;
  const int dialled = server.wire().dialled;
  spoil("SHOW", Fate::hold);
  engine.advance(5s);
  heal();
  const auto y = acquire("y", true);
  engine.advance(3s);
  EXPECT_EQ(said(*y), "granted");
  EXPECT_GT(server.wire().dialled, dialled);
}

// Hazard: a session that reconnects by itself, without its locks
TEST_P(BackendTrouble, ConnectionBreaks_SessionsLoseLocksAndRowsDoNot) {
  const auto a = acquire("a");
  const auto b = acquire("b");
  server.cut(1);
  engine.run();
  ASSERT_EQ(ours->host.losses.size(), of_rows() ? 0U : 2U);
  for (const auto& loss : ours->host.losses) EXPECT_EQ(loss.why.code, errc::lost);
  engine.advance(1s);
  for (const auto* each : {a.get(), b.get()}) {
    EXPECT_EQ(release(*ours, *each), of_rows() ? "released" : "not ours");
  }
  EXPECT_EQ(said(*acquire("a")), "granted");
}

// Hazard: a primary that has become a standby
TEST_P(BackendTrouble, Standby_IsLeftForAnotherServer) {
  if (options.strategy == Strategy::for_update) {  // others connect to nothing but a primary
    server.wire().info.standby = true;
    const auto waiting = acquire("a", true);
    EXPECT_TRUE(sent.empty());
    EXPECT_FALSE(waiting->unreachable_reports.empty());
    EXPECT_TRUE(failed(*acquire("b"), errc::unavailable, "standby"));
    server.wire().info.standby = false;
    engine.advance(3s);
    EXPECT_EQ(said(*waiting), "granted");
  }
  const auto held = acquire("held");
  refuse(try_word(), "25006", 1);  // the primary has become one
  const int dialled = server.wire().dialled;
  const auto later = acquire("c");
  engine.advance(1s);
  EXPECT_EQ(said(*later), "granted");
  EXPECT_GT(server.wire().dialled, dialled);
}

// Shows: hole postgresql-stopped-holder
TEST_P(BackendTrouble, ServerWithoutKeepalive_WarnsOnce) {
  server.wire().info.ends_silent_sessions = false;
  (void)acquire("a");
  const std::size_t warnings = options.strategy == Strategy::advisory ? 1 : 0;
  EXPECT_EQ(ours->host.warnings.size(), warnings);
  server.cut(1);
  engine.advance(1s);
  EXPECT_EQ(said(*acquire("b", true)), "granted");
  EXPECT_EQ(ours->host.warnings.size(), warnings);
  server.wire().info.ends_silent_sessions = true;
  others->host.warnings.clear();
  (void)taken_by_others("c");
  EXPECT_TRUE(others->host.warnings.empty());
}

TEST_P(BackendTrouble, SchemaMissing_QueriesDoNotCreateIt) {
  server.has_schema = false;
  std::optional<bool> held;
  ours->backend->inspect(LockKind::lock, "x", [&held](const Result<LockInfo>& info) { held = info.value().held; });
  engine.advance(1s);
  EXPECT_EQ(held, false);
  EXPECT_FALSE(server.has_schema);
}

}  // namespace

}  // namespace dlock::postgres
