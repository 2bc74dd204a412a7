// strategy=advisory: tries that share a session, grants that are proven.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "backend_fixture.hpp"

namespace dlock::postgres {

namespace {

using test::failed;
using test::lost;

class BackendAdvisory : public SessionsTest {
 protected:
  [[nodiscard]] std::ptrdiff_t count(std::string_view words) const {
    return std::count(sent.begin(), sent.end(), words);
  }
};
INSTANTIATE_TEST_SUITE_P(, BackendAdvisory, testing::Values(Strategy::advisory), name_of_strategy);

// Hazard: a session gets its advisory lock twice
TEST_P(BackendAdvisory, LockHeldBySession_BusyWithoutRequest) {
  const auto x = acquire("x");
  spoil(try_word(), Fate::hold, 1);
  const auto other = acquire("other");  // the server is slow
  sent.clear();
  EXPECT_EQ(said(*acquire("x")), "busy");
  const auto waiting = acquire("x", true);
  EXPECT_EQ(count("fence.try_lock"), 0);
  heal();
  EXPECT_EQ(release(*ours, *x), "released");
  ASSERT_TRUE(waiting->grant);
  EXPECT_GT(waiting->grant->token, x->grant->token);
}

TEST_P(BackendAdvisory, QueryPending_RequestsAreSentTogether) {
  const auto holder = taken_by_others("c");
  EXPECT_EQ(release(*ours, *acquire("warm up"), 0s), "released");
  sent.clear();
  spoil("fence.try", Fate::hold, 1);
  Attempts tries;
  for (const char* const name : {"a", "b", "c", "d"}) tries.push_back(acquire(name));
  heal();
  engine.run();
  EXPECT_EQ(sent, (Words{"fence.try_lock", "fence.try_many"}));
  EXPECT_EQ(said(*tries[2]), "busy");
  tries.erase(tries.begin() + 2);
  spoil("fence.unlock", Fate::hold, 1);
  for (const auto& each : tries) {
    ASSERT_TRUE(each->grant);
    give_back(*each);
  }
  EXPECT_NE(tries[1]->grant->token, tries[2]->grant->token);
  engine.run();
  heal();
  engine.run();
  EXPECT_EQ(sent, (Words{"fence.try_lock", "fence.try_many", "fence.unlock", "fence.unlock_many"}));
  EXPECT_EQ(take_answers(), (Words{"a released", "b released", "d released"}));
  EXPECT_EQ(owners("a") + owners("b") + owners("d"), 0U);
}

// Shows: release-reports
TEST_P(BackendAdvisory, UnlockAnswersFalse_ReleaseIsNotConfirmed) {
  server.falsify = [](int, std::string_view word, Rows& rows) {
    if (word == "fence.unlock") rows.rows.at(0).at(0) = "f";
  };
  EXPECT_EQ(release(*ours, *acquire("x")), "not ours");
  server.falsify = nullptr;
  const auto y = granted_after_a_wait("y");
  server.falsify = [](int, std::string_view word, Rows& rows) {
    if (word == "fence.unlock") rows.rows.at(0).at(0) = "f";
  };
  EXPECT_EQ(release(*ours, *y), "not ours");
  EXPECT_TRUE(ours->host.losses.empty());
}

// The session is given up because of the second answer, and the first grant goes with it.
TEST_P(BackendAdvisory, SessionProvenUnfit_GrantIsDropped) {
  EXPECT_EQ(release(*ours, *acquire("warm up"), 0s), "released");
  server.falsify = [](int, std::string_view word, Rows& rows) {
    if (word == "fence.try_many") rows.rows.at(1).at(1) = "0";
  };
  spoil("fence.try", Fate::hold, 1);
  std::vector<std::unique_ptr<Attempt>> tries;
  for (const char* const name : {"a", "b", "c"}) tries.push_back(acquire(name));
  heal();
  engine.advance(1s);
  for (const auto& each : tries) {
    const bool lost =
        std::ranges::any_of(ours->host.losses, [&](const auto& loss) { return loss.owner == each->request.owner; });
    EXPECT_EQ(each->grant && !lost, owners(each->request.name) == 1) << each->request.name << ": " << said(*each);
  }
}

// max_connections of the thousand are for waiters.
// Hazard: the server's lock table is full
TEST_P(BackendAdvisory, SessionFull_RefusesAndSaysSo) {
  const std::size_t most = ours->backend->capabilities().max_locks - options.max_connections;
  std::vector<std::unique_ptr<Attempt>> tries;
  for (std::size_t i = 0; i < most + 3; ++i) tries.push_back(ours->contend(std::to_string(i), false));
  engine.run();
  for (std::size_t i = 0; i < most; ++i) ASSERT_TRUE(tries[i]->grant) << i;
  for (std::size_t i = most; i < tries.size(); ++i) {
    EXPECT_TRUE(failed(*tries[i], errc::unavailable, "advisory locks"));
    EXPECT_EQ(owners(tries[i]->request.name), 0U);
  }
  EXPECT_EQ(release(*ours, *tries[0], 0s), "released");
  EXPECT_EQ(said(*acquire("another")), "granted");
}

TEST_P(BackendAdvisory, UnresponsiveSession_IsKeptWhileLeasesLast) {
  const auto x = acquire("x");
  const int dialled = server.wire().dialled;
  spoil(try_word(), Fate::hold, 1);
  const auto waiting = acquire("y", true);
  engine.advance(5s);
  EXPECT_EQ(waiting->unreachable_reports.size(), 1U);
  engine.advance(4s);
  EXPECT_EQ(waiting->unreachable_reports.size(), 2U);
  EXPECT_EQ(server.wire().dialled, dialled);
  EXPECT_TRUE(ours->host.losses.empty());
  engine.advance(3s);
  EXPECT_TRUE(lost(ours->host, x->request.owner));
  EXPECT_EQ(said(*waiting), "granted");
  EXPECT_EQ(release(*ours, *waiting), "released");
  spoil(try_word(), Fate::hold, 1);
  const auto next = acquire("y", true);
  engine.advance(5s);
  EXPECT_EQ(said(*next), "granted") << "no lock is lost with that session";
}

TEST_P(BackendAdvisory, FirstTry_ProvesTheSessionInTheSameRoundTrip) {
  spoil("fence.proof", Fate::hold, 1);
  const auto a = acquire("a");
  EXPECT_EQ(sent, (Words{"fence.proof", "fence.try_lock"}));
  heal();
  engine.run();
  EXPECT_EQ(said(*a), "granted");
  EXPECT_EQ(said(*acquire("b")), "granted");
  EXPECT_EQ(count("fence.proof"), 1);
  server.cut(1);
  engine.advance(1s);
  EXPECT_EQ(said(*acquire("c")), "granted");
  EXPECT_EQ(count("fence.proof"), 2);
}

// Shows: hole postgresql-no-advisory-locks
// Hazard: a product's advisory locks lock nothing
TEST_P(BackendAdvisory, SessionNotProven_GrantIsRefused) {
  struct Proof {
    std::size_t column;
    const char* cell;
    const char* words;
  };
  for (const Proof& proof :
       {Proof{1, "f", "pg_locks does not show it"}, Proof{0, "9", "a different session answered"}}) {
    server.falsify = [&](int, std::string_view word, Rows& rows) {
      if (word == "fence.proof") rows.rows.at(0).at(proof.column) = proof.cell;
    };
    for (const bool wait : {false, true}) {
      EXPECT_TRUE(failed(*acquire("x", wait), errc::unsupported, proof.words));
      engine.advance(1s);
      EXPECT_EQ(owners("x"), 0U);
    }
  }
  server.falsify = nullptr;
  EXPECT_EQ(said(*acquire("x")), "granted") << "each session is asked";
}

TEST_P(BackendAdvisory, ProofForbidden_WarnsOnce) {
  refuse("fence.proof", "42501");
  Attempts held;
  for (const char* const name : {"a", "b", "c"}) {
    held.push_back(acquire(name));
    EXPECT_TRUE(held.back()->grant);
    if (held.size() < 2) continue;
    server.cut(1);
    engine.advance(1s);
  }
  EXPECT_EQ(
      std::count_if(ours->host.warnings.begin(), ours->host.warnings.end(),
                    [](const auto& each) { return each.reason.detail.find("cannot be checked") != std::string::npos; }),
      1);
}

// The server would make the session that reads a writer.
// Hazard: a session that reads becomes the writer
TEST_P(BackendAdvisory, SessionReads_WriterIsBusyWithoutRequest) {
  const auto contend = [this](Mode mode) {
    auto attempt = ours->contend("x", false, LockKind::read_write, mode);
    engine.run();
    return attempt;
  };
  const auto reader = contend(Mode::shared);
  sent.clear();
  EXPECT_EQ(said(*contend(Mode::exclusive)), "busy");
  EXPECT_TRUE(sent.empty());
  EXPECT_EQ(release(*ours, *reader), "released");
  EXPECT_EQ(said(*contend(Mode::exclusive)), "granted");
}

}  // namespace

}  // namespace dlock::postgres
