// strategy=advisory: tries that share a session, grants that are proven, readers that share a lock.
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
  [[nodiscard]] std::unique_ptr<Attempt> contend_rw(Client& client, Mode mode, bool wait = false) {
    return client.contend("x", wait, LockKind::read_write, mode);
  }
  [[nodiscard]] std::unique_ptr<Attempt> read() {
    auto attempt = contend_rw(*ours, Mode::shared);
    engine.run();
    return attempt;
  }
  [[nodiscard]] std::size_t sessions() { return owners("x", LockKind::read_write); }
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

TEST_P(BackendAdvisory, TriesOfOneLock_FirstIsSentForAll) {
  for (const bool is_held : {false, true}) {
    const std::string name = is_held ? "held" : "free";
    const auto holder = is_held ? taken_by_others(name) : nullptr;
    Attempts tries;
    for (int i = 0; i < 3; ++i) tries.push_back(ours->contend(name, false));
    sent.clear();
    engine.run();
    EXPECT_LE(count("fence.try_lock"), 1);
    EXPECT_EQ(said(*tries[0]), is_held ? "busy" : "granted");
    EXPECT_EQ(said(*tries[1]) + said(*tries[2]), "busybusy");
  }
}

TEST_P(BackendAdvisory, BusyAnswer_CountsForEarlierTriesOnly) {
  const auto holder = taken_by_others("x");
  spoil(try_word(), Fate::hold, 1);
  const auto first = acquire("x");
  EXPECT_EQ(release(*others, *holder, 0s), "released");
  const auto second = acquire("x");
  heal();
  engine.run();
  EXPECT_EQ(said(*first), "busy");
  EXPECT_EQ(said(*second), "granted");
}

TEST_P(BackendAdvisory, UnlockPending_TryIsSentBehindIt) {
  const auto a = acquire("a");
  const auto b = acquire("b");
  sent.clear();
  spoil("fence.unlock", Fate::hold, 1);
  give_back(*a);
  give_back(*b);  // behind the other, and not sent yet
  const auto again = ours->contend("b", false);
  EXPECT_EQ(sent, (Words{"fence.unlock", "fence.unlock", "fence.try_lock"}));
  engine.run();
  EXPECT_FALSE(again->grant);
  heal();
  engine.run();
  ASSERT_TRUE(again->grant);
  EXPECT_GT(again->grant->token, b->grant->token);
  EXPECT_EQ(take_answers(), (Words{"a released", "b released"}));
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

TEST_P(BackendAdvisory, SessionBreaksBeforeRelease_IsNotConfirmed) {
  const auto a = acquire("a");
  const auto b = acquire("b");
  spoil("fence.unlock", Fate::hold, 1);
  give_back(*a);
  give_back(*b);
  server.cut(1);
  engine.run();
  EXPECT_EQ(take_answers(), (Words{"a unknown", "b not ours"}));
  EXPECT_TRUE(ours->host.losses.empty());
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

// If all of them were sent at once, the last answer of the session would be as old as the first of them.
TEST_P(BackendAdvisory, ManySlowTries_SessionIsKept) {
  const auto held = acquire("held");
  server.delay = [] { return 250ms; };
  spoil("fence.try", Fate::late);
  refuse("fence.try", "55P03");
  Attempts waiting;
  for (int i = 0; i < 70; ++i) waiting.push_back(ours->contend(std::to_string(i), true));
  engine.advance(2 * options.lease);
  EXPECT_TRUE(ours->host.losses.empty());
  EXPECT_GT(refused(), 50);
  waiting.clear();
  heal();
  EXPECT_EQ(release(*ours, *held), "released");
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

TEST_P(BackendAdvisory, SharedByReaders_LastReaderUnlocks) {
  const auto one = contend_rw(*ours, Mode::shared);
  const auto two = contend_rw(*ours, Mode::shared);
  engine.run();
  const auto three = read();
  ASSERT_TRUE(one->grant && two->grant && three->grant);
  EXPECT_EQ(count("fence_rw.try_lock_shared"), 1);
  EXPECT_EQ(count("fence_rw.join_shared"), 1);
  EXPECT_EQ(two->grant->token.value(), one->grant->token.value() + 1);
  EXPECT_GT(three->grant->token, two->grant->token);
  EXPECT_EQ(three->grant->mode, Mode::shared);
  EXPECT_EQ(three->grant->kind, LockKind::read_write);
  EXPECT_EQ(release(*ours, *two), "released");
  EXPECT_EQ(release(*ours, *one), "released");
  EXPECT_EQ(count("fence.unlock_shared"), 0);
  EXPECT_EQ(sessions(), 1U);
  EXPECT_EQ(release(*ours, *three), "released");
  EXPECT_EQ(sessions(), 0U);
  EXPECT_TRUE(read()->grant);
}

// The server would make the session that reads a writer.
// Hazard: a session that reads becomes the writer
TEST_P(BackendAdvisory, SessionReads_WriterIsBusyWithoutRequest) {
  const auto reader = read();
  sent.clear();
  const auto writer = contend_rw(*ours, Mode::exclusive);
  engine.run();
  EXPECT_EQ(said(*writer), "busy");
  EXPECT_TRUE(sent.empty());
  EXPECT_EQ(release(*ours, *reader), "released");
  const auto next = contend_rw(*ours, Mode::exclusive);
  engine.run();
  EXPECT_EQ(said(*next), "granted");
}

TEST_P(BackendAdvisory, GrantGivenBack_GoesToALaterTry) {
  EXPECT_EQ(release(*ours, *acquire("warm up"), 0s), "released");
  spoil(try_word(), Fate::hold, 2);
  const auto other = acquire("other");
  auto first = acquire("x");  // these are sent together
  const auto second = acquire("x");
  auto third = acquire("x");
  server.release_held();
  engine.run();
  first->contention.reset();
  third->contention.reset();
  server.release_held();
  engine.run();
  ASSERT_TRUE(second->grant);
  EXPECT_EQ(release(*ours, *second), "released");
  EXPECT_EQ(owners("x"), 0U);
}

}  // namespace

}  // namespace dlock::postgres
