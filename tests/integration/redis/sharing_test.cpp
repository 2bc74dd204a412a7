// Read-write locks and semaphores on a real server: several clients, and what is special to Redis.
#include <deque>
#include <optional>

#include "redis/redis_test.hpp"

namespace dlock::test {

namespace {

// A read-write lock as one is read.
class ToRead {
 public:
  explicit ToRead(ReadWriteLock& lock) : lock_(lock) {}
  [[nodiscard]] const std::string& name() const noexcept { return lock_.name(); }
  template <class Handler>
  void async_acquire(const AcquireOptions& options, Handler&& handler) {
    lock_.async_acquire_shared(options, std::forward<Handler>(handler));
  }

 private:
  ReadWriteLock& lock_;
};

class SeveralHoldersTest : public RedisStrategyTest {
 protected:
  // What each kind waits for in this strategy.
  Client client(ClientOptions options = {}) { return steady(std::move(options), strategy()); }
  static AcquireOptions patiently() { return {.wait = conformance::guard()}; }
};

TEST_P(SeveralHoldersTest, TwoReadersAndAWriter) {
  const Client first = client({.label = "first"});
  const Client second = client({.label = "second"});
  ReadWriteLock one = first.make_read_write_lock("x");
  ReadWriteLock two = second.make_read_write_lock("x");
  std::optional<Lease> reading = one.acquire_shared(patiently());
  std::optional<Lease> also_reading = two.acquire_shared(patiently());
  Pending writer(two, {});
  EXPECT_FALSE(one.try_acquire().has_value());
  EXPECT_EQ(server.command({"ZCARD", redis::keys_of("dlock:", "x", LockKind::read_write).lock}).integer, 2);
  reading.reset();
  EXPECT_FALSE(writer.done());
  also_reading.reset();
  const Lease writing = writer.lease();
  EXPECT_FALSE(one.try_acquire_shared().has_value());
  const LockInfo info = first.inspect("x", LockKind::read_write);
  ASSERT_EQ(info.holders.size(), 1U);
  EXPECT_EQ(info.holders[0].mode, Mode::exclusive);
  EXPECT_EQ(info.holder, second.holder());
  EXPECT_EQ(info.token, writing.token());
}

TEST_P(SeveralHoldersTest, ThreeWhoWantTwoPermits) {
  const Client first = client();
  const Client second = client();
  Semaphore one = first.make_semaphore("x", 2);
  Semaphore two = second.make_semaphore("x", 2);
  std::optional<Lease> a = one.acquire(patiently());
  std::optional<Lease> b = two.acquire(patiently());
  Pending third(two, {});
  EXPECT_FALSE(one.try_acquire().has_value());
  EXPECT_FALSE(third.done());
  a.reset();
  EXPECT_TRUE(third.lease().held());
  EXPECT_TRUE(b->held());
}

// Each lease ends by itself, however the others are renewed.
TEST_P(SeveralHoldersTest, AReaderThatIsCutOffIsOutWhenItsLeaseEnds) {
  const Client living = client({.lease = 1s});
  const Client cut_off = disturbed({.lease = 1s, .response_timeout = 200ms, .close_timeout = 100ms}, strategy());
  ReadWriteLock mine = living.make_read_write_lock("x");
  ReadWriteLock its = cut_off.make_read_write_lock("x");
  std::optional<Lease> reading = mine.acquire_shared(patiently());
  const Lease lost = its.acquire_shared(patiently());
  const LossEvent loss(lost);
  proxy.refuse(true);
  proxy.drop();
  Pending writer(mine, {});
  loss.event().wait("who is cut off does not lose its lease");
  await_renewal(*reading);
  EXPECT_TRUE(reading->held());
  EXPECT_FALSE(writer.done());
  reading.reset();
  EXPECT_TRUE(writer.lease().held());
}

TEST_P(SeveralHoldersTest, AreAllListedAndLoseTheLockThatIsBroken) {
  const Client holding = client({.lease = 3s});
  const Client other = client();
  Semaphore semaphore = holding.make_semaphore("broken", 3);
  const Lease one = semaphore.acquire(patiently());
  const Lease two = semaphore.acquire(patiently());
  const LossEvent loss_of_one(one);
  const LossEvent loss_of_two(two);
  const auto all = other.list(LockKind::semaphore);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].holders.size(), 2U);
  EXPECT_EQ(all[0].permits, 3U);
  EXPECT_TRUE(other.list().empty());
  EXPECT_TRUE(other.list(LockKind::read_write).empty());
  EXPECT_TRUE(other.break_lock("broken", LockKind::semaphore));
  loss_of_one.event().wait("a holder is not told");
  loss_of_two.event().wait("a holder is not told");
  EXPECT_FALSE(other.break_lock("broken", LockKind::semaphore));
  EXPECT_GT(semaphore.acquire(patiently()).token(), two.token());
}

TEST_P(SeveralHoldersTest, WhatIsOfAnotherTypeIsRefused) {
  const Client some = client();
  (void)server.command({"SET", "dlock.rw:x", "data"});
  (void)server.command({"ZADD", "dlock.sem:x", "1", "data"});
  ReadWriteLock lock = some.make_read_write_lock("x");
  Semaphore semaphore = some.make_semaphore("x", 2);
  std::error_code error;
  EXPECT_FALSE(lock.acquire(patiently(), error).held());
  EXPECT_EQ(error, errc::protocol);
  EXPECT_FALSE(semaphore.acquire(patiently(), error).held());
  EXPECT_EQ(error, errc::protocol);
  EXPECT_TRUE(some.list(LockKind::semaphore).empty()) << "somebody's data";
  EXPECT_THROW((void)some.inspect("x", LockKind::semaphore), Error);
  EXPECT_THROW((void)some.break_lock("x", LockKind::semaphore), Error);
  EXPECT_EQ(server.command({"GET", "dlock.rw:x"}).text, "data");
  EXPECT_EQ(server.command({"ZCARD", "dlock.sem:x"}).integer, 1);
}

INSTANTIATE_TEST_SUITE_P(, SeveralHoldersTest, ::testing::Values("queue", "poll"));

class LineTest : public RedisTest {};

// A crowd that waits behind a writer comes in by waves of what one call of a script does.
TEST_F(LineTest, ACrowdOfReadersEntersTogether) {
  const Client writing = steady();
  const Client reading = steady();
  ReadWriteLock lock = writing.make_read_write_lock("x");
  ReadWriteLock others = reading.make_read_write_lock("x");
  ToRead to_read(others);
  std::optional<Lease> writer = lock.acquire({.wait = conformance::guard()});
  std::deque<Pending> crowd;
  for (int i = 0; i < 200; ++i) crowd.emplace_back(to_read, AcquireOptions{});
  const auto queue = redis::keys_of("dlock:", "x", LockKind::read_write).queue;
  await("readers do not arrive", [&] { return server.command({"ZCARD", queue}).integer == 200; });
  writer.reset();
  std::deque<Lease> inside;
  for (Pending& each : crowd) inside.push_back(each.lease());
  for (const Lease& each : inside) EXPECT_TRUE(each.held());
}

TEST_F(LineTest, ReplicasHaveToKnowOfAPermit) {
  const Client client = steady({}, "replicas_ack=1");
  Semaphore semaphore = client.make_semaphore("x", 2);
  std::error_code error;
  EXPECT_FALSE(semaphore.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable);
  EXPECT_EQ(server.command({"ZCARD", "dlock.sem:x"}).integer, 0) << "it was taken back";
}

}  // namespace

}  // namespace dlock::test
