// The end of a client, of an io_context, or of a coroutine while an operation is pending.
#include <optional>

#include "asio_test.hpp"

namespace dlock::test {
namespace {

class AsioEndTest : public AsioTest {};

TEST_P(AsioEndTest, TheEndOfTheClientCompletesAPendingAcquire) {
  const Lease held = others.acquire();
  std::optional<Client> short_lived = connect(url);
  DistributedLock waiting = short_lived->make_lock("a");
  std::optional<ErrorCode> error;
  async_acquire(waiting, {}, net::bind_executor(io, [&](ErrorCode ec, const Lease& lease) {
                  error = ec;
                  EXPECT_FALSE(lease.has_value());
                }));
  EXPECT_EQ(io.poll(), 0U);
  short_lived.reset();
  EXPECT_FALSE(error);
  io.run();
  EXPECT_TRUE(error == errc::closed);
}

TEST_P(AsioEndTest, AnAcquireAfterTheEndOfTheClientCompletesOnTheExecutor) {
  std::optional<Client> short_lived = connect(url);
  DistributedLock lock_of_it = short_lived->make_lock("a");
  Lease lease = lock_of_it.acquire();
  short_lived.reset();
  std::optional<ErrorCode> error;
  std::optional<bool> ours;
  async_acquire(lock_of_it, {}, net::bind_executor(io, [&](ErrorCode ec, const Lease&) { error = ec; }));
  async_release(lease, net::bind_executor(io, [&](ErrorCode, bool was_ours) { ours = was_ours; }));
  EXPECT_FALSE(error || ours);
  io.run();
  EXPECT_TRUE(error == errc::closed);
  EXPECT_EQ(ours, false);
}

// Notices its destruction.
class Witness {
 public:
  explicit Witness(bool& destroyed) noexcept : destroyed_(&destroyed) {}
  Witness(Witness&& from) noexcept : destroyed_(std::exchange(from.destroyed_, nullptr)) {}
  Witness& operator=(Witness&&) = delete;
  ~Witness() {
    if (destroyed_ != nullptr) *destroyed_ = true;
  }

 private:
  bool* destroyed_;
};

TEST_P(AsioEndTest, AnIoContextThatEndsDestroysThePendingCoroutineAndItsLease) {
  const Lease held = others.acquire();
  bool destroyed = false;
  {
    net::io_context short_lived;
    net::co_spawn(
        short_lived,
        [&]() -> net::awaitable<void> {
          const Witness witness(destroyed);
          const Lease first = co_await async_acquire(client.make_lock("first"), {}, net::use_awaitable);
          EXPECT_TRUE(first.held());
          (void)co_await async_acquire(lock, {}, net::use_awaitable);
          ADD_FAILURE() << "it went on";
        },
        net::detached);
    while (client.stats().waiting == 0) short_lived.run_for(1ms);
    EXPECT_FALSE(destroyed);
  }
  EXPECT_TRUE(destroyed);
  expect_free("first");                                // the lease in the coroutine was released
  await([&] { return client.stats().waiting == 0; });  // the wait was cancelled
}

TEST_P(AsioEndTest, AnIoContextThatEndsAfterTheGrantReleasesTheLease) {
  {
    net::io_context short_lived;
    async_acquire(lock, {}, net::bind_executor(short_lived, [](ErrorCode, const Lease&) { ADD_FAILURE(); }));
    await([&] { return other.inspect("a").held; });
  }
  expect_free("a");
}

// Starts another acquire when it is destroyed.
struct Restless {
  AsioEndTest* test;
  DistributedLock* lock;
  net::io_context* io;
  bool* called;

  ~Restless() {
    if (lock == nullptr) return;
    async_acquire(*lock, {}, net::bind_executor(*io, [called = called](ErrorCode, const Lease&) { *called = true; }));
  }
};

TEST_P(AsioEndTest, AnAcquireOnAnIoContextThatEndsIsDiscarded) {
  const Lease held = others.acquire();
  bool called = false;
  {
    net::io_context short_lived;
    auto restless = std::make_shared<Restless>(Restless{this, nullptr, &short_lived, &called});
    restless->lock = &lock;
    async_acquire(lock, {}, net::bind_executor(short_lived, [restless](ErrorCode, const Lease&) { ADD_FAILURE(); }));
  }
  EXPECT_FALSE(called);
  await([&] { return client.stats().waiting == 0; });
}

TEST_P(AsioEndTest, AnIoContextMayEndWhileItsOperationsComplete) {
  for (int round = 0; round < 50; ++round) {
    Lease held = others.acquire();
    std::jthread releaser;
    {
      net::io_context short_lived;
      async_acquire(lock, {}, net::bind_executor(short_lived, [](ErrorCode, const Lease&) {}));
      releaser = std::jthread([&] { EXPECT_TRUE(held.release()); });
    }
    releaser.join();
  }
  expect_free("a");
}

TEST_P(AsioEndTest, AHandlerMayDestroyTheClient) {
  auto short_lived = std::make_unique<Client>(connect(url));
  DistributedLock lock_of_it = short_lived->make_lock("a");
  bool held = true;
  async_acquire(lock_of_it, {}, net::bind_executor(io, [&](ErrorCode error, const Lease& lease) {
                  EXPECT_FALSE(error);
                  short_lived.reset();
                  held = lease.held();
                }));
  io.run();
  EXPECT_FALSE(held);
  expect_free("a");
}

DLOCK_ON_BOTH_BACKENDS(AsioEndTest);

}  // namespace
}  // namespace dlock::test
