// The work of callers: pairs, hand-offs, asynchronous calls.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "bench/measure/statistics.hpp"
#include "bench/scenarios/async_load.hpp"
#include "bench/scenarios/relay.hpp"
#include "bench/scenarios/work.hpp"
#include "tests/support/fake_backend.hpp"
#include "tests/unit/bench/scenarios/test_target.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(WorkTest, ReleaseOfALostLease_IsAnError) {
  const Client client = connect("memory://");
  Lease lease = client.make_lock("x").acquire();
  ASSERT_TRUE(client.break_lock("x"));
  EXPECT_THROW(release(lease), std::runtime_error);
}

TEST(WorkTest, GrantedLease_IsZeroWhereItDoesNotExpire) {
  const Client client = connect("memory://", {.lease = seconds(7)});
  EXPECT_EQ(granted_lease(client, "x", {}), seconds(7));
  EXPECT_EQ(granted_lease(client, "x", {.lease = milliseconds(2500)}), milliseconds(2500));
  EXPECT_TRUE(client.make_lock("x").try_acquire()) << "it is free again";
  const rig::ScratchDirectory directory;
  EXPECT_EQ(granted_lease(connect("file://" + directory.path()), "x", {}), seconds(0));
}

// Each kind of work that one caller can do alone.
TEST(WorkTest, Work_ReleasesTheLockEachTime) {
  const struct {
    WorkOnClient work;
    std::uint64_t at_first;  // pairs that connect
  } rows[] = {{own_lock, 1}, {readers_and_writers(50), 1}, {permits(4), 1}, {many_names(10), 0}};
  for (const auto& row : rows) {
    const Client client = connect("memory://");
    const Crowd::Work work = row.work(client, 0, {});
    EXPECT_EQ(client.stats().released, row.at_first);
    EXPECT_GT(work({}), Clock::duration(0));
    EXPECT_EQ(client.stats().released, row.at_first + 1);
    EXPECT_EQ(client.stats().held, 0U);
  }
}

TEST(WorkTest, ReadShare_IsThatOfThePairs) {
  const auto service = std::make_shared<test::FakeService>();
  service->capabilities.read_write_locks = true;
  service->answer_everything();
  int reads = 0;  // counted on the client's thread before the pair ends
  service->on_contend = [&, grant = service->on_contend](test::FakeService::Contend& contend) {
    if (contend.request.mode == Mode::shared) ++reads;
    grant(contend);
  };
  register_backend("bench-reads", service->factory());
  const Client client = connect("bench-reads://");
  for (const int percent : {0, 95, 100}) {
    reads = 0;
    const Crowd::Work work = readers_and_writers(percent)(client, 0, {});
    for (int i = 1; i < 1000; ++i) (void)work({});
    EXPECT_NEAR(reads, 10 * percent, percent == 95 ? 20 : 0);
  }
}

TEST(WorkTest, Stop_CancelsThePairsThatConnect) {
  const Client client = connect("memory://");
  const Lease held = client.make_lock(lock_name("dlock", 3)).acquire();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW((void)own_lock(client, 3, stop.get_token()), Error);
}

TEST(WorkTest, Writer_WaitsForAsManyReadsAsThereAreReaders) {
  constexpr std::uint64_t readers = 50;
  constexpr std::uint64_t turns = 20;
  const Client client = connect("memory://");
  const WorkOnClient make = writer_among(readers);
  const Crowd::Work writer = make(client, 0, {});
  std::jthread thread([read = make(client, 1, {})](const std::stop_token& stop) {
    while (!stop.stop_requested()) EXPECT_EQ(read({}), std::nullopt) << "no sample";
  });
  for (std::uint64_t i = 0; i < turns; ++i) EXPECT_GT(writer({}), Clock::duration(0));
  EXPECT_GE(client.stats().released, turns * (readers + 1));
}

TEST(WorkTest, Clients_HaveRoomForAllLocks) {
  const TestTarget target;
  const Clients clients = connect_clients(target, 9, 4);
  EXPECT_EQ(target.clients(), (std::vector<std::size_t>(4, 3)));
  std::vector<const Client*> used;
  const auto make = spread(clients, [&](const Client& client, std::size_t, const std::stop_token&) -> Crowd::Work {
    used.push_back(&client);
    return [](const std::stop_token&) { return std::nullopt; };
  });
  for (std::size_t caller : {0U, 3U, 4U}) (void)make(caller, {});
  EXPECT_EQ(used, (std::vector<const Client*>{&(*clients)[0], &(*clients)[3], &(*clients)[0]}));
}

// The store of memory:// is a queue: with turns for all of them, each has as many as any other, or one less.
TEST(WorkTest, Contenders_HoldTheLockInTurn) {
  const TestTarget target;
  const auto crowd = contenders(connect_clients(target, 4, 2), 4);
  crowd->gather({});
  crowd->start();
  (void)crowd->measure(milliseconds(20), {});
  const Window window = crowd->measure(milliseconds(60), {});
  EXPECT_GT(window.samples.count(), 0U);
  EXPECT_GT(fairness_of_turns(window.calls_of_each), 0.9);
  EXPECT_GE(window.longest_wait, 3 * contended_hold) << "while each of the others held it";
  EXPECT_LE(window.calls(), window.length / contended_hold + 1);
}

// The only contender has no successor: others who come and go are none.
TEST(WorkTest, Contender_LeavesTheLockToAnother) {
  const TestTarget target("memory://successor");
  const Clients clients = connect_clients(target, 1, 1);
  const Client other = target.connect(1);
  DistributedLock lock = other.make_lock(lock_name("contended"));
  const auto crowd = contenders(clients, 1);
  crowd->gather({});
  crowd->start();
  while (clients->front().stats().released == 0) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(lock.acquire().release());
  EXPECT_EQ(clients->front().stats().acquired, 1U);
}

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Clock::time_point start{seconds(100)};

TEST(RelayTest, HandOff_LastsFromTheReleaseToTheNextHolder) {
  Relay relay(2);
  EXPECT_EQ(relay.take(0, start), std::nullopt) << "there was no release";
  (void)relay.let_go(start + milliseconds(10));
  EXPECT_EQ(relay.take(1, start + milliseconds(13)), milliseconds(3));
}

TEST(RelayTest, ReleasingContender_WaitsForASuccessorOrAStop) {
  Relay relay(2);
  (void)relay.take(0, start);
  const std::uint64_t turn = relay.let_go(start);
  std::atomic<bool> went_on = false;
  std::jthread releaser([&] {
    relay.await_successor(turn, {});
    went_on = true;
  });
  EXPECT_FALSE(went_on);
  (void)relay.take(1, start);
  releaser.join();
  EXPECT_TRUE(went_on);
  relay.await_successor(turn, {});  // returns at once: there has been a successor
  std::stop_source stop;
  stop.request_stop();
  relay.await_successor(relay.let_go(start), stop.get_token());
}

TEST(RelayTest, LongestWait_HasEndedOrGoesOn) {
  Relay relay(3);
  for (const std::size_t contender : {0U, 1U, 2U}) relay.ask(contender, start);
  (void)relay.take(0, start + milliseconds(1));
  (void)relay.take(1, start + milliseconds(7));
  EXPECT_EQ(relay.take_longest_wait(start + milliseconds(5)), milliseconds(7));
  EXPECT_EQ(relay.take_longest_wait(start + milliseconds(50)), milliseconds(50)) << "it goes on";
  (void)relay.take(2, start + milliseconds(60));
  EXPECT_EQ(relay.take_longest_wait(start + seconds(9)), milliseconds(60));
  EXPECT_EQ(relay.take_longest_wait(start + seconds(9)), milliseconds(0)) << "each counts once";
}

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(AsyncLoadTest, OneClient_KeepsAllCallsInFlight) {
  const TestTarget target;
  AsyncLoad load(target, 50);
  load.start();
  while (load.calls() < 50) (void)load.measure(milliseconds(1), {});
  const auto before = load.calls();
  const Window window = load.measure(milliseconds(20), {});
  EXPECT_TRUE(window.complete);
  EXPECT_GT(window.samples.count(), 50U);
  // A sample is of a call whose release is in the window; its acquire may be before.
  EXPECT_NEAR(static_cast<double>(window.calls()), static_cast<double>(window.samples.count()), 26);
  EXPECT_GE(load.calls(), before + window.calls());
  EXPECT_EQ(target.clients(), std::vector<std::size_t>{50});
}

TEST(AsyncLoadTest, EndOfTheLoad_LeavesNothingLocked) {
  const TestTarget target("memory://load");
  const Client other = connect(target.url(1));
  {
    AsyncLoad load(target, 20);
    load.start();
    (void)load.measure(milliseconds(1), {});
  }
  for (std::size_t i = 0; i < 20; ++i) EXPECT_TRUE(other.make_lock(lock_name("outstanding", i)).try_acquire()) << i;
}

TEST(AsyncLoadTest, BrokenLock_IsAnError) {
  const TestTarget target("memory://broken");
  const Client other = connect(target.url(1));
  AsyncLoad load(target, 1);
  load.start();
  EXPECT_THROW(
      {
        for (;;) {
          (void)other.break_lock(lock_name("outstanding"));
          (void)load.measure(nanoseconds(1), {});
        }
      },
      std::runtime_error);
}

}  // namespace
}  // namespace dlock::bench
