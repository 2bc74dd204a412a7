// A cancelled wait leaves nothing behind, whatever cancels it and whenever.
#include <optional>
#include <stop_token>
#include <variant>

#include "asio_test.hpp"

namespace dlock::test {
namespace {

class AsioCancellationTest : public AsioTest {
 protected:
  // An acquire on the io_context that the signal can cancel.
  template <class Options>
  void start(const Options& options) {
    async_acquire(lock, options,
                  net::bind_cancellation_slot(signal.slot(), net::bind_executor(io, [this](ErrorCode ec, Lease lease) {
                                                error = ec;
                                                granted = std::move(lease);
                                              })));
  }

  net::cancellation_signal signal;
  std::optional<ErrorCode> error;
  Lease granted;
};

TEST_P(AsioCancellationTest, EachTypeOfCancellationEndsTheWait) {
  for (const auto type : {net::cancellation_type::terminal, net::cancellation_type::partial,
                          net::cancellation_type::total, net::cancellation_type::all}) {
    Lease held = others.acquire();
    error.reset();
    start(AcquireOptions{});
    signal.emit(net::cancellation_type::none);
    EXPECT_EQ(io.poll(), 0U);
    signal.emit(type);
    io.run();
    io.restart();
    EXPECT_TRUE(error == errc::cancelled);
    EXPECT_FALSE(granted.has_value());
    EXPECT_TRUE(held.release());
    expect_free("a");
  }
}

TEST_P(AsioCancellationTest, TheStopTokenOfTheOptionsEndsTheWaitToo) {
  const Lease held = others.acquire();
  std::stop_source stop;
  start(AcquireOptions{.cancel = stop.get_token()});
  EXPECT_EQ(io.poll(), 0U);
  stop.request_stop();
  io.run();
  EXPECT_TRUE(error == errc::cancelled);
}

TEST_P(AsioCancellationTest, AStopThatWasRequestedBeforeEndsTheWaitAtOnce) {
  std::stop_source stop;
  stop.request_stop();
  start(AcquireOptions{.cancel = stop.get_token()});
  io.run();
  EXPECT_TRUE(error == errc::cancelled);
  expect_free("a");
}

TEST_P(AsioCancellationTest, AGrantedLeaseIsDeliveredThoughTheOperationIsCancelled) {
  start(AcquireOptions{});
  await([&] { return other.inspect("a").held; });
  signal.emit(net::cancellation_type::all);
  io.run();
  EXPECT_EQ(error, ErrorCode());
  EXPECT_TRUE(granted.held());
  signal.emit(net::cancellation_type::all);  // after the end: no effect
  EXPECT_TRUE(granted.release());
}

// A grant and a cancellation at the same time: either way the lock is free in the end.
TEST_P(AsioCancellationTest, ACancellationThatMeetsTheGrantLosesNoLease) {
  for (int round = 0; round < 100; ++round) {
    Lease held = others.acquire();
    error.reset();
    start(AcquireOptions{});
    std::jthread releaser([&] { EXPECT_TRUE(held.release()); });
    if (round % 2 == 0) std::this_thread::yield();
    signal.emit(net::cancellation_type::terminal);
    io.run();
    io.restart();
    ASSERT_TRUE(error == errc::cancelled || (!*error && granted.held())) << error->message();
    granted = Lease();
  }
  expect_free("a");
}

TEST_P(AsioCancellationTest, ATimerThatExpiresFirstEndsTheWait) {
  Lease held = others.acquire();
  ReadWriteLock prices = client.make_read_write_lock("prices");
  const Lease reading = other.make_read_write_lock("prices").acquire_shared();
  MultiLock both = client.make_multi_lock({"a", "b"});
  Election election = client.make_election("scheduler");
  const Lease leading = other.make_election("scheduler").campaign();
  run([&]() -> net::awaitable<void> {
    net::steady_timer timer(io);
    timer.expires_after(1ms);
    auto first = co_await (async_acquire(lock, {}, net::use_awaitable) || timer.async_wait(net::use_awaitable));
    EXPECT_EQ(first.index(), 1U);
    timer.expires_after(1ms);
    first = co_await (async_acquire(prices, {}, net::use_awaitable) || timer.async_wait(net::use_awaitable));
    EXPECT_EQ(first.index(), 1U);
    timer.expires_after(1ms);
    first = co_await (async_campaign(election, {}, net::use_awaitable) || timer.async_wait(net::use_awaitable));
    EXPECT_EQ(first.index(), 1U);
    timer.expires_after(1ms);
    auto second = co_await (async_acquire(both, {}, net::use_awaitable) || timer.async_wait(net::use_awaitable));
    EXPECT_EQ(second.index(), 1U);
  });
  EXPECT_TRUE(held.release());
  expect_free("a");
  expect_free("b");
}

TEST_P(AsioCancellationTest, ALockThatIsFreeIsAcquiredBeforeTheTimer) {
  run([&]() -> net::awaitable<void> {
    net::steady_timer timer(io);
    timer.expires_after(1h);
    auto first = co_await (async_acquire(lock, {}, net::use_awaitable) || timer.async_wait(net::use_awaitable));
    EXPECT_EQ(first.index(), 0U);
    EXPECT_TRUE(std::get<0>(first).held());
  });
  expect_free("a");
}

TEST_P(AsioCancellationTest, ACancelledReleaseReleases) {
  Lease lease = lock.acquire();
  bool ours = false;
  async_release(lease,
                net::bind_cancellation_slot(signal.slot(), net::bind_executor(io, [&](ErrorCode ec, bool was_ours) {
                                              error = ec;
                                              ours = was_ours;
                                            })));
  signal.emit(net::cancellation_type::all);
  io.run();
  EXPECT_EQ(error, ErrorCode());
  EXPECT_TRUE(ours);
}

DLOCK_ON_BOTH_BACKENDS(AsioCancellationTest);

}  // namespace
}  // namespace dlock::test
