// The memory backend over its store: strategies, URLs, names, and children made by fork(). Over it, read-write locks,
// semaphores and elections as programs use them, beyond what the conformance suite tests.
#include <gtest/gtest.h>

#include <future>
#include <stop_token>
#include <system_error>
#include <thread>

#include <dlock/dlock.hpp>

#include "tests/support/forked_child.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/simple_backend.hpp"
#include "util/event.hpp"

// A child that starts an engine is the subject of one of these tests.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {  // NOLINT(bugprone-reserved-identifier): TSan's name for it
  return "die_after_fork=0";
}

namespace dlock::memory {
namespace {

using namespace std::chrono_literals;

// Shows: waiters-woken
TEST(MemoryBackendTest, OtherStrategies_WakeAllOrPoll) {
  const auto clock = std::make_shared<ManualClock>();
  for (const std::string strategy : {"queue", "watch", "poll"}) {
    const Client client = connect("memory://strategies?strategy=" + strategy, {.clock = clock});
    EXPECT_EQ(client.capabilities().strategy, strategy);
    EXPECT_EQ(client.capabilities().fair, strategy == "queue");
    EXPECT_EQ(client.capabilities().counts_waiters, strategy == "queue");
    Lease held = client.make_lock("lock").acquire();
    bool granted = false;
    client.make_lock("lock").async_acquire({}, [&](std::error_code, const Lease&) { granted = true; });
    clock->advance(1ns);  // all that is due has run when it returns
    EXPECT_FALSE(granted);
    EXPECT_TRUE(held.release());
    clock->advance(1ns);
    EXPECT_EQ(granted, strategy != "poll") << strategy;
    clock->advance(40ms);
    EXPECT_TRUE(granted) << strategy;
  }
}

TEST(MemoryUrl, OffendingPart_IsNamed) {
  test::expect_refused([](const std::string& url) { return connect(url); }, {{"memory://a?strategy=fifo", "strategy"},
                                                                             {"memory://a?strategy=", "strategy"},
                                                                             {"memory://a?colour=red", "colour"},
                                                                             {"memory://a/b", "path"},
                                                                             {"memory:///b", "path"},
                                                                             {"memory://a:80", "port"},
                                                                             {"memory://a,b", "list"},
                                                                             {"memory://user:hidden@a", "user"}});
}

TEST(MemoryName, Clients_ShareTheLocksOfOneName) {
  const Client one = connect("memory://shared");
  const Lease lease = one.make_lock("x").acquire();
  for (const auto& [url, is_free] :
       {std::pair("memory://shared?strategy=watch", false), {"memory://other", true}, {"memory://", true}}) {
    const Client client = connect(url);
    EXPECT_EQ(client.make_lock("x").try_acquire().has_value(), is_free) << url;
  }
  EXPECT_EQ(connect("memory://shared?strategy=poll").inspect("x").waiters, std::nullopt);
  EXPECT_EQ(connect("memory://shared?strategy=poll").list().at(0).waiters, std::nullopt);
  EXPECT_EQ(one.list().at(0).waiters, 0U);
}

// Even if another thread was inside of named() at the fork: util/process_test.cpp.
TEST(MemoryFork, Child_HasStoresOfItsOwn) {
  const auto store = MemoryStore::named("fork");
  const ManualClock clock;
  LockRequest request{.name = "x", .owner = OwnerId(0, 1), .holder = "parent", .lease = 30s};
  ASSERT_TRUE(store->try_acquire(request, 0s, clock).granted);
  request.owner = OwnerId(0, 2);
  int notified = 0;
  const auto notify = [&](const MemoryStore::Answer&) { ++notified; };
  ASSERT_FALSE(store->enqueue(request, notify, clock).granted);
  EXPECT_EQ(test::ForkedChild::run([&](test::ForkedChild& child) {
              const auto own = MemoryStore::named("fork");
              child.check(own != store);
              child.check(own == MemoryStore::named("fork"));
              const Client client = connect("memory://fork");
              auto lease = client.make_lock("x").try_acquire();
              child.check(lease && lease->release());
              child.check(notified == 0);
            }),
            "good");
  EXPECT_EQ(store->residue("x", clock), 2U);
  EXPECT_EQ(MemoryStore::named("fork"), store);
}

// --- Kinds of locks --------------------------------------------------------------------------------------------------

class KindsTest : public testing::Test {
 protected:
  static void expect_refused(const std::function<void()>& call, std::error_code code, const std::string& words) {
    const Failure refused = test::thrown_by(call);
    EXPECT_EQ(refused.code, code) << words;
    EXPECT_NE(refused.detail.find(words), std::string::npos) << refused.detail;
  }

  const Client client_ = connect("memory://kinds");
  DistributedLock lock_ = client_.make_lock("a");
  ReadWriteLock rw_ = client_.make_read_write_lock("a");
  Semaphore semaphore_ = client_.make_semaphore("a", 1);
  Election election_ = client_.make_election("a");
  MultiLock both_ = client_.make_multi_lock({"a", "b"});
};

// Otherwise a wait that the program asked for would be ignored in silence.
TEST_F(KindsTest, TryWithAnotherWaitInItsOptions_IsRefused) {
  const AcquireOptions waits{.wait = 2s};
  const std::string words = "wait: try_acquire() does not wait; use try_acquire_for() or acquire()";
  const std::vector<std::pair<std::function<void()>, std::string>> rows = {
      {[&] { (void)lock_.try_acquire(waits); }, words},
      {[&] { (void)rw_.try_acquire(waits); }, words},
      {[&] { (void)semaphore_.try_acquire(waits); }, words},
      {[&] { (void)both_.try_acquire(waits); }, words},
      {[&] { (void)rw_.try_acquire_shared(waits); },
       "wait: try_acquire_shared() does not wait; use try_acquire_shared_for() or acquire_shared()"},
      {[&] { (void)election_.try_campaign({.wait = 2s}); },
       "wait: try_campaign() does not wait; use try_campaign_for() or campaign()"},
      {[&] { (void)lock_.try_acquire_for(1s, waits); },
       "wait: try_acquire_for() waits for its argument; the options say otherwise"},
      {[&] { (void)both_.try_acquire_for(1s, waits); }, "wait: try_acquire_for()"},
      {[&] { (void)rw_.try_acquire_shared_for(1s, waits); }, "wait: try_acquire_shared_for()"}};
  for (const auto& [call, refusal] : rows) expect_refused(call, errc::invalid_argument, refusal);
  std::error_code ec;
  EXPECT_EQ(lock_.try_acquire(waits, ec), std::nullopt);
  EXPECT_EQ(ec, errc::invalid_argument);
  EXPECT_FALSE(client_.inspect("a").held);
  for (const Duration same : {Duration(0s), forever}) EXPECT_TRUE(lock_.try_acquire({.wait = same}));
  EXPECT_TRUE(lock_.try_acquire_for(1s, {.wait = 1s}));
  EXPECT_TRUE(lock_.try_acquire_for(1s, {.lease = 10s}));
  lock_.set_defaults({.wait = 3s});
  both_.set_defaults({.wait = 3s});
  EXPECT_TRUE(lock_.try_lock_for(1s)) << "the call itself sets the wait";
  lock_.unlock();
  EXPECT_TRUE(both_.try_lock());
  both_.unlock();
}

TEST_F(KindsTest, ReadWriteLockOfAThread_IsUnlockedByItsOwnSide) {
  const auto expect_held = [&] {
    EXPECT_TRUE(rw_.lease().held());
    for (const auto& again : {std::function([&] { rw_.lock_shared(); }), std::function([&] { rw_.lock(); })}) {
      expect_refused(again, std::make_error_code(std::errc::resource_deadlock_would_occur),
                     "this thread already holds read-write lock \"a\"");
    }
    EXPECT_FALSE(rw_.try_lock() || rw_.try_lock_shared() || rw_.try_lock_for(1ms));
    EXPECT_FALSE(rw_.try_lock_shared_until(std::chrono::steady_clock::now()));
  };
  rw_.unlock_shared();
  EXPECT_TRUE(rw_.try_lock_shared());
  rw_.unlock();
  expect_held();
  EXPECT_TRUE(client_.make_read_write_lock("a").try_acquire_shared());
  rw_.unlock_shared();
  EXPECT_FALSE(rw_.lease().has_value());
  EXPECT_TRUE(rw_.try_lock());
  rw_.unlock_shared();
  expect_held();
  EXPECT_FALSE(client_.make_read_write_lock("a").try_acquire_shared());
  rw_.unlock();
  EXPECT_FALSE(client_.inspect("a", LockKind::read_write).held);
}

TEST_F(KindsTest, Scope_RunsAFunctionUnderTheLock) {
  EXPECT_TRUE(with_lock(rw_, {}, [&](const Lease& lease) { return lease.held() && !rw_.try_acquire_shared(); }));
  EXPECT_TRUE(with_shared_lock(rw_, {}, [&](const Lease& lease) { return lease.held() && rw_.try_acquire_shared(); }));
  with_lock(semaphore_, {}, [&](const Lease&) { EXPECT_FALSE(semaphore_.try_acquire()); });
  EXPECT_TRUE(semaphore_.try_acquire());
}

TEST_F(KindsTest, Failure_SpeaksOfTheKind) {
  const Lease reading = rw_.acquire_shared();
  expect_refused([&] { (void)rw_.acquire({.wait = 0ms}); }, errc::timed_out, "read-write lock \"a\" is already held");
  const Lease permit = semaphore_.acquire();
  expect_refused([&] { (void)client_.make_semaphore("a", 3).acquire(); }, errc::invalid_argument,
                 "semaphore \"a\" is in use with 1 permits, but the request says 3");
  for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 31}) {
    expect_refused([&] { (void)client_.make_semaphore("a", bad); }, errc::invalid_argument,
                   "permits: " + std::to_string(bad));
  }
  EXPECT_EQ(client_.make_semaphore("a", (std::int64_t{1} << 31) - 1).permits(), 2147483647U);
  EXPECT_TRUE(client_.break_lock("a", LockKind::read_write));
  EXPECT_TRUE(permit.held()) << "names are different locks for each kind";
  EXPECT_EQ(client_.list(LockKind::semaphore).size(), 1U);
  expect_refused([&] { (void)client_.forget("a", LockKind::semaphore); }, errc::timed_out, "");
  EXPECT_FALSE(client_.forget("a", LockKind::election));
  EXPECT_TRUE(client_.forget_idle(1min, LockKind::semaphore).empty()) << "it is in use";
}

TEST_F(KindsTest, WrongNameAndMissingKind_AreRefused) {
  const Client simple = connect("simple://", {}, std::make_shared<test::SimpleService>()->factory());
  const std::vector<std::pair<std::function<void(const Client&, const std::string&)>, const char*>> rows = {
      {[](const auto& client, const auto& name) { (void)client.make_read_write_lock(name); },
       "has no read-write locks"},
      {[](const auto& client, const auto& name) { (void)client.make_semaphore(name, 1); }, "has no semaphores"},
      {[](const auto& client, const auto& name) { (void)client.make_election(name); }, "has no elections"},
      {[](const auto& client, const auto& name) { (void)client.inspect(name, LockKind::semaphore); }, ""},
      {[](const auto& client, const auto& name) { (void)client.break_lock(name, LockKind::semaphore); }, ""},
      {[](const auto& client, const auto& name) { (void)client.forget(name, LockKind::semaphore); }, ""}};
  for (const auto& row : rows) {
    for (const std::string name : {"", "a\n"}) {
      expect_refused([&] { row.first(client_, name); }, errc::invalid_argument, "name");
    }
    expect_refused([&] { row.first(simple, "a"); }, errc::unsupported, row.second);
  }
  expect_refused([&] { (void)simple.list(LockKind::semaphore); }, errc::unsupported, "");
  expect_refused([&] { (void)simple.forget_idle(1min, LockKind::semaphore); }, errc::unsupported, "");
}

// --- Elections -------------------------------------------------------------------------------------------------------

TEST_F(KindsTest, Run_EndsWithAStopOrAFailure) {
  std::stop_source stop;
  stop.request_stop();
  election_.run(stop.get_token(), [](const Lease&, const std::stop_token&) { FAIL() << "it was stopped before"; });
  const std::stop_source never;
  EXPECT_THROW(
      election_.run(never.get_token(), [](const Lease&, const std::stop_token&) { throw std::runtime_error("no"); }),
      std::runtime_error);
  EXPECT_EQ(election_.leader(), std::nullopt) << "it resigned";
  expect_refused(
      [&] { election_.run(never.get_token(), {.value = "a\nb"}, [](const Lease&, const auto&) { FAIL(); }); },
      errc::invalid_argument, "value");
  const Lease leading = election_.campaign();
  stop = {};
  std::jthread candidate(
      [&] { client_.make_election("a").run(stop.get_token(), [](const Lease&, const std::stop_token&) { FAIL(); }); });
  while (client_.inspect("a", LockKind::election).waiters != 1U) std::this_thread::yield();
  stop.request_stop();
}

TEST_F(KindsTest, Observation_EndsAfterItsHandler) {
  util::Event called;
  util::Event go_on;
  std::atomic<bool> returned{false};
  std::optional<Observation> observation(election_.observe([&](const std::optional<Leader>&) {
    std::error_code ec;
    (void)election_.leader(ec);
    EXPECT_EQ(ec, std::errc::resource_deadlock_would_occur) << "a question on the engine's thread";
    called.set();
    go_on.wait();
    returned = true;
  }));
  called.wait();
  {
    const std::jthread ends([&] {
      observation.reset();
      EXPECT_TRUE(returned);
    });
    go_on.set();
  }
  std::atomic<int> first{0};
  std::promise<void> seen;
  Observation moved = election_.observe([&](const std::optional<Leader>&) { ++first; });
  Observation replaced = election_.observe([](const std::optional<Leader>&) {});
  replaced = std::move(moved);
  while (first < 1) std::this_thread::yield();
  replaced = election_.observe([&](const std::optional<Leader>& leader) {
    if (leader) seen.set_value();
  });
  const Lease leading = election_.campaign();
  seen.get_future().get();
  EXPECT_EQ(first, 1);
  std::optional<Client> short_lived = connect("memory://kinds");
  replaced = short_lived->make_election("a").observe([](const std::optional<Leader>&) {});
  short_lived.reset();
}

}  // namespace
}  // namespace dlock::memory
