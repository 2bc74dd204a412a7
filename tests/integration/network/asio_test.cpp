// Coroutines on an event loop, on a real service: <dlock/asio.hpp>.
#include <asio.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <exception>
#include <optional>

#include <dlock/asio.hpp>

#include "network/room.hpp"

namespace dlock::test {

namespace {

using namespace asio::experimental::awaitable_operators;
using asio::use_awaitable;

class AsioTest : public Room {
 protected:
  template <class Coroutine>
  void start(Coroutine coroutine) {
    asio::co_spawn(io, std::move(coroutine), [](std::exception_ptr problem) {
      if (problem) std::rethrow_exception(problem);
    });
  }

  asio::io_context io{1};
};

TEST_P(AsioTest, Coroutines_HoldInTurn) {
  Contender ours(steady(), "turns");
  FencingToken last;
  int turns = 0;
  for (int i = 0; i < 3; ++i) {
    start([&]() -> asio::awaitable<void> {
      Lease lease = co_await async_acquire(ours.lock, {}, use_awaitable);
      EXPECT_GT(lease.token(), last);
      last = lease.token();
      const bool was_ours = co_await async_release(lease, use_awaitable);
      EXPECT_TRUE(was_ours);
      ++turns;
    });
  }
  io.run();
  EXPECT_EQ(turns, 3);
  await_no_residue("turns");
}

TEST_P(AsioTest, WaitCancelledByATimer_LeavesNothing) {
  Contender holder(steady(), "timed");
  Contender own(steady(), "timed");
  Lease lease = take(holder.lock);
  bool cancelled = false;
  asio::steady_timer timer(io, asio::steady_timer::time_point::max());
  start([&]() -> asio::awaitable<void> {
    std::error_code ec;
    co_await (async_acquire(own.lock, {}, use_awaitable) || timer.async_wait(asio::redirect_error(use_awaitable, ec)));
    cancelled = true;
  });
  std::jthread loop([this] { io.run(); });
  await_waiter("timed");
  asio::post(io, [&] { timer.cancel(); });
  loop.join();
  EXPECT_TRUE(cancelled);
  EXPECT_TRUE(lease.release());
  await_no_residue("timed");
}

TEST_P(AsioTest, WaitCancelledWhileCutOff_Ends) {
  Contender holder(steady(), "cut");
  Contender ours(disturbed(), "cut");
  Lease lease = take(holder.lock);
  asio::cancellation_signal signal;
  std::optional<std::error_code> error;
  async_acquire(
      ours.lock, {},
      asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(io, [&](auto ec, const Lease&) { error = ec; })));
  await_waiter("cut");
  cut();
  signal.emit(asio::cancellation_type::all);
  io.run();
  EXPECT_EQ(error, errc::cancelled);
  heal();
  EXPECT_TRUE(lease.release());
  expect_free_and_clean("cut");
}

TEST_P(AsioTest, EndOfTheIoContext_LeavesNothing) {
  Contender holder(steady(), "second");
  Contender own(steady(), "second");
  Lease lease = take(holder.lock);
  {
    asio::io_context short_lived{1};
    asio::co_spawn(
        short_lived,
        [&]() -> asio::awaitable<void> {
          const Lease first = co_await async_acquire(own.client.make_lock("first"), {}, use_awaitable);
          (void)co_await async_acquire(own.lock, {}, use_awaitable);
          ADD_FAILURE() << "it went on";
        },
        asio::detached);
    await("the coroutine does not wait", [&] {
      short_lived.poll();
      return service.has_waiter(GetParam(), "second");
    });
  }
  await_no_residue("first");
  EXPECT_TRUE(lease.release());
  await_no_residue("second");
}

INSTANTIATE_TEST_SUITE_P(, AsioTest, ::testing::ValuesIn(tested_strategies()), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
