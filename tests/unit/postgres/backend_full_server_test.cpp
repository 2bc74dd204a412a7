// Locks in rows at a server that has no connections left: a client that holds a lock connects several times a second,
// a client that only waits for one makes room. For locks in sessions see backend_turns_test.cpp.
#include "backend_rows_fixture.hpp"

namespace dlock::postgres {

namespace {

class BackendAtAFullServer : public BackendRowsTest {
 protected:
  [[nodiscard]] std::unique_ptr<Attempt> contend(Client& client, const std::string& name, bool wait = true) {
    auto attempt = client.contend(name, wait, 1h);
    engine.run();
    return attempt;
  }
  [[nodiscard]] bool renews(Client& client, const Attempt& held) {
    renew(client, held);
    engine.run();
    return take_answers() == Words{held.request.name + " renewed"};
  }
  [[nodiscard]] int dialled_within(std::chrono::nanoseconds time) {
    const int before = server.wire().dialled;
    engine.advance(time);
    return server.wire().dialled - before;
  }
  // Room for so many more connections than there are.
  void set_room(std::size_t more) { server.wire().room = server.wire().connected() + more; }
};

TEST_P(BackendAtAFullServer, AClientThatOnlyWaits_ConnectsEveryFewSeconds) {
  set_room(0);
  Attempts waiting;
  for (int i = 0; i < 50; ++i) waiting.push_back(contend(*ours, "x" + std::to_string(i)));
  (void)dialled_within(10s);
  const int dialled = dialled_within(60s);
  EXPECT_GE(dialled, 5);
  EXPECT_LE(dialled, 13);
  EXPECT_FALSE(waiting[0]->failure);
  const auto& reports = waiting[0]->unreachable_reports;
  EXPECT_TRUE(std::any_of(reports.begin(), reports.end(),
                          [](const Failure& why) { return why.detail.find("53300") != std::string::npos; }));
  const auto attempt = contend(*ours, "y", false);
  EXPECT_GE(dialled_within(60ms), 1) << "a try does not wait";
  EXPECT_EQ(said(*attempt), "unavailable");
}

TEST_P(BackendAtAFullServer, AHolder_ConnectsSeveralTimesASecond_UntilItHasReleased) {
  const auto held = contend(*ours, "x", false);
  ASSERT_TRUE(held->grant);
  server.wire().room = 0;
  server.wire().break_connections();
  EXPECT_GE(dialled_within(10s), 40);
  set_room(1);
  engine.advance(250ms);
  EXPECT_TRUE(renews(*ours, *held));
  EXPECT_EQ(release(*ours, *held, 0s), "released");
  server.wire().room = 0;
  server.wire().break_connections();
  (void)dialled_within(20s);
  EXPECT_LE(dialled_within(60s), 13);
}

TEST_P(BackendAtAFullServer, AWaiterThatWasRefused_TriesItsLocksAndLeaves) {
  const auto holder = contend(*others, "x", false);
  set_room(0);
  const auto waiting = contend(*ours, "x");
  set_room(1);
  const std::size_t connected = server.wire().connected();
  for (int times = 0; times < 3; ++times) {
    const std::size_t before = server.wire().queries.size();
    engine.advance(10s);
    EXPECT_GT(server.wire().queries.size(), before);
    EXPECT_EQ(server.wire().connected(), connected) << times;
    server.wire().room = connected;
    engine.advance(10s);  // refused again
    server.wire().room = connected + 1;
  }
  EXPECT_EQ(release(*others, *holder, 30s), "released");
  EXPECT_TRUE(waiting->grant);
  EXPECT_EQ(server.wire().connected(), connected + 1) << "a holder keeps its connection";
}

TEST_P(BackendAtAFullServer, OnceThereIsRoomAgain_ConnectionsStayAndListen) {
  const auto holder = contend(*others, "x", false);
  set_room(0);
  const auto waiting = contend(*ours, "x");
  const std::size_t connected = server.wire().connected();
  server.wire().room.reset();
  engine.advance(2min);
  EXPECT_EQ(server.wire().connected(), connected + 2);
  EXPECT_EQ(release(*others, *holder, 0s), "released");
  EXPECT_TRUE(waiting->grant);
}

TEST_P(BackendAtAFullServer, AConnectionThatStandsStays_AndTheWaiterPollsOverIt) {
  const auto holder = contend(*others, "x", false);
  set_room(1);
  const auto waiting = contend(*ours, "x");
  engine.advance(1s);
  const std::size_t connected = server.wire().connected();
  EXPECT_EQ(connected, *server.wire().room);
  EXPECT_LE(dialled_within(60s), 13) << "to listen";
  EXPECT_EQ(server.wire().connected(), connected);
  EXPECT_EQ(release(*others, *holder, 2s), "released");
  EXPECT_TRUE(waiting->grant);
}

INSTANTIATE_TEST_SUITE_P(, BackendAtAFullServer, testing::ValuesIn(row_strategies), name_of_strategy);

}  // namespace

}  // namespace dlock::postgres
