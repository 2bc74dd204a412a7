// Each kind of lock, each kind of completion token, options, errors, cancellation.
#include <atomic>
#include <future>
#include <optional>
#include <stop_token>
#include <tuple>
#include <type_traits>

#include "asio_test.hpp"

namespace dlock::test {
namespace {

class AsioAcquireTest : public AsioTest {};

TEST_P(AsioAcquireTest, EachKindOfLock_HasItsOperation) {
  ReadWriteLock prices = client.make_read_write_lock("prices");
  Semaphore uploads = client.make_semaphore("uploads", 2);
  MultiLock both = client.make_multi_lock({"x", "y"});
  Election election = client.make_election("scheduler");
  run([&]() -> net::awaitable<void> {
    {
      const Lease one = co_await async_acquire_shared(prices, {}, net::use_awaitable);
      const Lease two = co_await async_acquire_shared(prices, {}, net::use_awaitable);
      EXPECT_TRUE(one.held() && two.held());
      EXPECT_FALSE(prices.try_acquire());
    }
    {
      const Lease writing = co_await async_acquire(prices, {}, net::use_awaitable);
      EXPECT_FALSE(prices.try_acquire_shared());
    }
    const Lease first = co_await async_acquire(uploads, {}, net::use_awaitable);
    const Lease second = co_await async_acquire(uploads, {}, net::use_awaitable);
    EXPECT_TRUE(first.held() && second.held());
    EXPECT_FALSE(uploads.try_acquire());

    MultiLease leases = co_await async_acquire(both, {.wait = 5s}, net::use_awaitable);
    EXPECT_EQ(leases.size(), 2U);
    EXPECT_TRUE(leases.held());
    const bool were_ours = co_await async_release(leases, net::use_awaitable);
    EXPECT_TRUE(were_ours);

    const std::string address(100, '7');  // longer than a string without memory of its own
    const Lease leading = co_await async_campaign(election, {.value = address + ":80"}, net::use_awaitable);
    EXPECT_TRUE(leading.held());
    EXPECT_EQ(election.leader().value_or(Leader{}).value, address + ":80");
  });
}

TEST_P(AsioAcquireTest, EachCompletionToken_GetsTheLeaseOrTheError) {
  Lease lease = async_acquire(lock, {}, net::use_future).get();
  EXPECT_TRUE(lease.held());
  run([&]() -> net::awaitable<void> {
    ErrorCode error;
    const Lease none = co_await async_acquire(others, {.wait = 0s}, net::redirect_error(net::use_awaitable, error));
    EXPECT_TRUE(error == errc::timed_out) << error.message();
    EXPECT_FALSE(none.has_value());
    try {
      (void)co_await async_acquire(lock, {.wait = -1s}, net::use_awaitable);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const SystemError& e) {
      EXPECT_TRUE(e.code() == errc::invalid_argument && e.code() == std::errc::invalid_argument) << e.what();
    }
  });
  EXPECT_TRUE(async_release(lease, net::use_future).get());
  EXPECT_FALSE(lease.held());
  std::optional<ErrorCode> acquired, released;
  async_acquire(lock, {}, net::bind_executor(io, [&](ErrorCode error, Lease got) {
                  acquired = error;
                  async_release(std::move(got),
                                net::bind_executor(io, [&](ErrorCode ec, bool /*was_ours*/) { released = ec; }));
                }));
  io.run();
  EXPECT_EQ(acquired, ErrorCode());
  EXPECT_EQ(released, ErrorCode());
  async_release(lock.acquire(), net::detached);
  expect_free("a");
  async_acquire(lock, {}, net::detached);
  expect_free("a");
}

TEST_P(AsioAcquireTest, DeferredOperation_OwnsItsLockAndOptionsAndStartsWhenAwaited) {
  std::stop_source stop;
  const std::string value(100, 'x');
  Election election = client.make_election("later");
  auto acquire = async_acquire(client.make_lock("a"), {.wait = 5s, .cancel = stop.get_token()}, deferred);
  auto campaign = async_campaign(election, {.value = value + "!", .cancel = stop.get_token()}, deferred);
  EXPECT_TRUE(others.try_acquire());
  run([&]() -> net::awaitable<void> {
    Lease lease = co_await std::move(acquire)(net::use_awaitable);
    EXPECT_EQ(lease.name(), "a");
    auto release = async_release(std::move(lease), deferred);
    const bool ours = co_await std::move(release)(net::use_awaitable);
    EXPECT_TRUE(ours);
    const Lease leading = co_await std::move(campaign)(net::use_awaitable);
    EXPECT_EQ(election.leader().value_or(Leader{}).value, value + "!");
  });
  expect_free("a");
}

// --- Options ---------------------------------------------------------------------------------------------------------

TEST_P(AsioAcquireTest, OptionsInBraces_MeanTheSameAsAcquireOptions) {
  const auto braced = detail::owned(
      detail::BracedAcquireOptions{.wait = 1s, .lease = 2s, .renew = false, .cancel = std::stop_source().get_token()});
  const auto campaign =
      detail::owned(detail::BracedCampaignOptions{.value = "x", .wait = 1s, .lease = 2s, .renew = false});
  const auto values = [](const auto& options) { return std::tuple(options.wait, options.lease, options.renew); };
  EXPECT_EQ(values(braced), std::tuple(Duration(1s), Duration(2s), false));
  EXPECT_EQ(values(campaign), values(braced));
  EXPECT_EQ(campaign.value, "x");
  const auto empty = detail::owned(detail::BracedAcquireOptions{});
  EXPECT_EQ(values(empty), values(AcquireOptions()));
  EXPECT_FALSE(empty.cancel.stop_possible());
  using detail::safe_options;
  EXPECT_TRUE((safe_options<AcquireOptions&, detail::BracedAcquireOptions, AcquireOptions>));
  EXPECT_TRUE((safe_options<const AcquireOptions&, detail::BracedAcquireOptions, AcquireOptions>));
  EXPECT_TRUE((safe_options<detail::BracedAcquireOptions, detail::BracedAcquireOptions, AcquireOptions>));
  EXPECT_FALSE((safe_options<AcquireOptions, detail::BracedAcquireOptions, AcquireOptions>)) << "a temporary";
}

// AddressSanitizer finds the compiler's fault here if the members of the options own anything.
TEST_P(AsioAcquireTest, OptionsInACoAwaitExpression_AreDestroyedOnce) {
  std::stop_source stop;
  Election election = client.make_election("scheduler");
  run([&]() -> net::awaitable<void> {
    for (int round = 0; round < 3; ++round) {
      Lease lease = co_await async_acquire(lock, {.wait = 5s, .cancel = stop.get_token()}, net::use_awaitable);
      lease = co_await async_campaign(election, {.value = std::string(100, 'x'), .cancel = stop.get_token()},
                                      net::use_awaitable);
      EXPECT_EQ(election.leader().value_or(Leader{}).value, std::string(100, 'x'));
      (void)co_await async_release(std::move(lease), net::use_awaitable);
      AcquireOptions named{.wait = 5s, .cancel = stop.get_token()};
      lease = co_await async_acquire(lock, named, net::use_awaitable);
    }
  });
  EXPECT_TRUE(stop.stop_possible());
}

DLOCK_ON_BOTH_BACKENDS(AsioAcquireTest);

// --- Cancellation ----------------------------------------------------------------------------------------------------

class AsioCancellationTest : public AsioTest {
 protected:
  // An acquire on the io_context that the signal can cancel.
  void start(const AcquireOptions& options = {}) {
    error.reset();
    async_acquire(lock, options,
                  net::bind_cancellation_slot(signal.slot(), net::bind_executor(io, [this](ErrorCode ec, Lease lease) {
                                                error = ec;
                                                granted = std::move(lease);
                                              })));
  }
  void finish() {
    io.run();
    io.restart();
  }

  net::cancellation_signal signal;
  std::optional<ErrorCode> error;
  Lease granted;
};

TEST_P(AsioCancellationTest, EachCancellation_EndsTheWait) {
  std::stop_source stop;
  for (const auto type : {net::cancellation_type::terminal, net::cancellation_type::partial,
                          net::cancellation_type::total, net::cancellation_type::all, net::cancellation_type::none}) {
    Lease held = others.acquire();
    start({.cancel = stop.get_token()});
    signal.emit(net::cancellation_type::none);
    EXPECT_EQ(io.poll(), 0U);
    type == net::cancellation_type::none ? (void)stop.request_stop() : signal.emit(type);
    finish();
    EXPECT_TRUE(error == errc::cancelled);
    EXPECT_FALSE(granted.has_value());
    EXPECT_TRUE(held.release());
    expect_free("a");
  }
  start({.cancel = stop.get_token()});
  finish();
  EXPECT_TRUE(error == errc::cancelled) << "a stop that was requested before";
  expect_free("a");
}

TEST_P(AsioCancellationTest, CancellationAfterTheGrantOrOfARelease_HasNoEffect) {
  start();
  await([&] { return other.inspect("a").held; });
  signal.emit(net::cancellation_type::all);
  finish();
  EXPECT_EQ(error, ErrorCode());
  EXPECT_TRUE(granted.held());
  signal.emit(net::cancellation_type::all);  // after the end
  bool ours = false;
  async_release(granted,
                net::bind_cancellation_slot(signal.slot(), net::bind_executor(io, [&](ErrorCode ec, bool was_ours) {
                                              error = ec;
                                              ours = was_ours;
                                            })));
  signal.emit(net::cancellation_type::all);
  finish();
  EXPECT_EQ(error, ErrorCode());
  EXPECT_TRUE(ours);
}

TEST_P(AsioCancellationTest, CancellationThatMeetsTheGrant_LosesNoLease) {
  for (int round = 0; round < 100; ++round) {
    Lease held = others.acquire();
    start();
    std::jthread releaser([&] { EXPECT_TRUE(held.release()); });
    if (round % 2 == 0) std::this_thread::yield();
    signal.emit(net::cancellation_type::terminal);
    finish();
    ASSERT_TRUE(error == errc::cancelled || (!*error && granted.held())) << error->message();
    granted = Lease();
  }
  expect_free("a");
}

DLOCK_ON_BOTH_BACKENDS(AsioCancellationTest);

}  // namespace
}  // namespace dlock::test
