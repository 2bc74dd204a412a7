// Each kind of lock, each kind of completion token, options, errors.
#include <atomic>
#include <future>
#include <optional>
#include <stop_token>
#include <type_traits>

#include "asio_test.hpp"

namespace dlock::test {
namespace {

class AsioAcquireTest : public AsioTest {};

TEST_P(AsioAcquireTest, ACoroutineAcquiresAndReleases) {
  run([&]() -> net::awaitable<void> {
    Lease lease = co_await async_acquire(lock, {.wait = 5s}, net::use_awaitable);
    EXPECT_TRUE(lease.held());
    EXPECT_EQ(lease.name(), "a");
    EXPECT_FALSE(others.try_acquire());
    const bool ours = co_await async_release(lease, net::use_awaitable);
    EXPECT_TRUE(ours);
    const bool again = co_await async_release(lease, net::use_awaitable);
    EXPECT_FALSE(again);
    EXPECT_TRUE(others.try_acquire());
  });
}

TEST_P(AsioAcquireTest, ACoroutineWaitsForTheHolder) {
  Lease held = others.acquire();
  FencingToken token;
  net::co_spawn(
      io,
      [&]() -> net::awaitable<void> {
        const Lease lease = co_await async_acquire(lock, {}, net::use_awaitable);
        token = lease.token();
      },
      rethrow);
  io.poll();
  EXPECT_EQ(token, FencingToken());
  const FencingToken before = held.token();
  EXPECT_TRUE(held.release());
  io.run();
  EXPECT_GT(token, before);
  expect_free("a");  // the coroutine's end destroyed the lease
}

TEST_P(AsioAcquireTest, EachKindOfLockHasItsOperation) {
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

TEST_P(AsioAcquireTest, AFutureGetsTheLease) {
  Lease lease = async_acquire(lock, {}, net::use_future).get();
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(async_release(lease, net::use_future).get());
  EXPECT_FALSE(lease.held());
}

TEST_P(AsioAcquireTest, ARedirectedErrorIsNotThrown) {
  const Lease held = others.acquire();
  run([&]() -> net::awaitable<void> {
    ErrorCode error;
    const Lease lease = co_await async_acquire(lock, {.wait = 0s}, net::redirect_error(net::use_awaitable, error));
    EXPECT_TRUE(error == errc::timed_out) << error.message();
    EXPECT_FALSE(lease.has_value());
  });
}

TEST_P(AsioAcquireTest, AnErrorIsThrownWithItsCode) {
  run([&]() -> net::awaitable<void> {
    try {
      (void)co_await async_acquire(lock, {.wait = -1s}, net::use_awaitable);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const SystemError& e) {
      EXPECT_TRUE(e.code() == errc::invalid_argument) << e.what();
      EXPECT_TRUE(e.code() == std::errc::invalid_argument) << e.what();
    }
  });
}

TEST_P(AsioAcquireTest, SuccessIsACodeOfNoError) {
  std::optional<ErrorCode> acquired, released;
  async_acquire(lock, {}, net::bind_executor(io, [&](ErrorCode error, Lease lease) {
                  acquired = error;
                  async_release(std::move(lease),
                                net::bind_executor(io, [&](ErrorCode ec, bool /*was_ours*/) { released = ec; }));
                }));
  io.run();
  EXPECT_EQ(acquired, ErrorCode());
  EXPECT_EQ(released, ErrorCode());
}

TEST_P(AsioAcquireTest, ADeferredAcquireStartsWhenItIsAwaited) {
  std::stop_source stop;
  const std::string value(100, 'x');
  Election election = client.make_election("later");
  auto acquire = async_acquire(lock, {.wait = 5s, .cancel = stop.get_token()}, deferred);
  auto campaign = async_campaign(election, {.value = value + "!", .cancel = stop.get_token()}, deferred);
  EXPECT_TRUE(others.try_acquire());
  run([&]() -> net::awaitable<void> {
    const Lease lease = co_await std::move(acquire)(net::use_awaitable);
    EXPECT_TRUE(lease.held());
    const Lease leading = co_await std::move(campaign)(net::use_awaitable);
    EXPECT_EQ(election.leader().value_or(Leader{}).value, value + "!");
  });
}

TEST_P(AsioAcquireTest, ADetachedReleaseFreesTheLock) {
  async_release(lock.acquire(), net::detached);
  expect_free("a");
}

TEST_P(AsioAcquireTest, ADetachedAcquireLeavesNothingHeld) {
  async_acquire(lock, {}, net::detached);
  expect_free("a");
}

TEST_P(AsioAcquireTest, ATemporaryLockOrLeaseIsMovedIntoTheOperation) {
  auto acquire = async_acquire(client.make_lock("temporary"), {}, deferred);
  run([&]() -> net::awaitable<void> {
    Lease lease = co_await std::move(acquire)(net::use_awaitable);
    EXPECT_EQ(lease.name(), "temporary");
    auto release = async_release(std::move(lease), deferred);
    const bool ours = co_await std::move(release)(net::use_awaitable);
    EXPECT_TRUE(ours);
  });
  expect_free("temporary");
}

// --- Options ---------------------------------------------------------------------------------------------------------

TEST_P(AsioAcquireTest, OptionsInBracesMeanWhatAcquireOptionsMean) {
  const auto braced = detail::owned(
      detail::BracedAcquireOptions{.wait = 1s, .lease = 2s, .renew = false, .cancel = std::stop_source().get_token()});
  EXPECT_EQ(braced.wait, Duration(1s));
  EXPECT_EQ(braced.lease, Duration(2s));
  EXPECT_FALSE(braced.renew);
  const AcquireOptions defaults;
  const auto empty = detail::owned(detail::BracedAcquireOptions{});
  EXPECT_EQ(empty.wait, defaults.wait);
  EXPECT_EQ(empty.lease, defaults.lease);
  EXPECT_EQ(empty.renew, defaults.renew);
  EXPECT_FALSE(empty.cancel.stop_possible());
  const auto campaign =
      detail::owned(detail::BracedCampaignOptions{.value = "x", .wait = 1s, .lease = 2s, .renew = false});
  EXPECT_EQ(campaign.value, "x");
  EXPECT_EQ(campaign.wait, Duration(1s));
  EXPECT_EQ(campaign.lease, Duration(2s));
  EXPECT_FALSE(campaign.renew);
}

// AddressSanitizer finds the compiler's fault here if the members of the options own anything.
TEST_P(AsioAcquireTest, OptionsInACoAwaitExpressionAreDestroyedOnce) {
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

TEST_P(AsioAcquireTest, AVariableOfOptionsIsSafeAndATemporaryIsNot) {
  using detail::safe_options;
  EXPECT_TRUE((safe_options<AcquireOptions&, detail::BracedAcquireOptions, AcquireOptions>));
  EXPECT_TRUE((safe_options<const AcquireOptions&, detail::BracedAcquireOptions, AcquireOptions>));
  EXPECT_TRUE((safe_options<detail::BracedAcquireOptions, detail::BracedAcquireOptions, AcquireOptions>));
  EXPECT_FALSE((safe_options<AcquireOptions, detail::BracedAcquireOptions, AcquireOptions>));
}

DLOCK_ON_BOTH_BACKENDS(AsioAcquireTest);

}  // namespace
}  // namespace dlock::test
