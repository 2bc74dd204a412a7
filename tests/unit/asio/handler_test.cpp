// The effects of a handler's executor and allocator, outstanding work, and the end of clients, io_contexts and
// coroutines while an operation is pending.
#include <atomic>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <vector>

#include "asio_test.hpp"

namespace dlock::test {
namespace {

class AsioHandlerTest : public AsioTest {};

TEST_P(AsioHandlerTest, Handler_RunsOnItsExecutorAndNeverInsideTheCall) {
  for (const bool fails : {false, true}) {
    std::optional<std::thread::id> ran_on;
    async_acquire(lock, {.wait = fails ? Duration(-1s) : forever},
                  net::bind_executor(io, [&](ErrorCode error, const Lease& lease) {
                    EXPECT_TRUE(fails ? error == errc::invalid_argument : !error);
                    EXPECT_EQ(lease.held(), !fails);
                    ran_on = std::this_thread::get_id();
                  }));
    await([&] { return fails || other.inspect("a").held; });
    EXPECT_FALSE(ran_on);
    io.run();
    io.restart();
    EXPECT_EQ(ran_on, std::this_thread::get_id());
  }
}

TEST_P(AsioHandlerTest, HandlerWithoutAnExecutor_MayBlock) {
  std::promise<bool> blocked;
  async_acquire(lock, {}, [&](ErrorCode error, Lease lease) {
    EXPECT_FALSE(error);
    std::error_code ec;
    const bool ours = lease.release(ec);  // fails on the engine thread
    EXPECT_FALSE(ec) << ec.message();
    Lease again = lock.acquire({}, ec);
    EXPECT_FALSE(ec) << ec.message();
    blocked.set_value(ours);
  });
  EXPECT_TRUE(blocked.get_future().get());
}

TEST_P(AsioHandlerTest, PendingOperation_IsOutstandingWork) {
  const auto expect_work = [&](auto executor) {
    Lease held = others.acquire();
    bool granted = false;
    async_acquire(lock, {}, net::bind_executor(executor, [&](ErrorCode error, const Lease&) { granted = !error; }));
    EXPECT_EQ(io.poll(), 0U);
    EXPECT_FALSE(io.stopped());  // poll() stops an io_context without work
    EXPECT_TRUE(held.release());
    io.run();
    EXPECT_TRUE(granted);
    EXPECT_TRUE(io.stopped());
    io.restart();
  };
  expect_work(io.get_executor());
  expect_work(net::any_io_executor(io.get_executor()));
}

struct Memory {
  void use(std::ptrdiff_t bytes) {
    const std::lock_guard guard(mutex);
    in_use += bytes;
    if (bytes > 0) ++allocations;
    users.insert(std::this_thread::get_id());
  }

  std::mutex mutex;
  std::ptrdiff_t in_use = 0;
  int allocations = 0;
  std::set<std::thread::id> users;
};

template <class T>
struct CountingAllocator {
  using value_type = T;
  explicit CountingAllocator(Memory& counted) noexcept : memory(&counted) {}
  template <class U>
  CountingAllocator(const CountingAllocator<U>& other) noexcept  // NOLINT(google-explicit-constructor): rebinding
      : memory(other.memory) {}

  T* allocate(std::size_t n) {
    memory->use(static_cast<std::ptrdiff_t>(n * sizeof(T)));
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* p, std::size_t n) noexcept {
    memory->use(-static_cast<std::ptrdiff_t>(n * sizeof(T)));
    std::allocator<T>().deallocate(p, n);
  }
  template <class U>
  bool operator==(const CountingAllocator<U>& other) const noexcept {
    return memory == other.memory;
  }

  Memory* memory;
};

TEST_P(AsioHandlerTest, Operation_UsesTheHandlersAllocatorOnItsThread) {
  Memory memory;
  std::optional<std::ptrdiff_t> in_use;
  Lease held = others.acquire();
  async_acquire(
      lock, {},
      net::bind_allocator(CountingAllocator<int>(memory), net::bind_executor(io, [&](ErrorCode error, const Lease&) {
                            EXPECT_FALSE(error);
                            in_use = memory.in_use;
                          })));
  EXPECT_GT(memory.in_use, 0);
  EXPECT_TRUE(held.release());
  io.run();
  EXPECT_EQ(in_use, 0) << "freed before the handler runs";
  EXPECT_EQ(memory.allocations, 1);
  EXPECT_EQ(memory.users, std::set{std::this_thread::get_id()});
}

// The least that Asio calls an executor.
struct PlainExecutor {
  std::promise<std::function<void()>>* task;

  template <class F>
  void execute(F&& f) const {
    task->set_value([kept = std::make_shared<std::decay_t<F>>(std::forward<F>(f))] { std::move (*kept)(); });
  }
  static constexpr net::execution::blocking_t query(net::execution::blocking_t) noexcept {
    return net::execution::blocking.never;
  }
  bool operator==(const PlainExecutor&) const noexcept = default;
};

TEST_P(AsioHandlerTest, ExecutorWithoutAnExecutionContext_IsAccepted) {
  std::promise<std::function<void()>> task;
  bool granted = false;
  async_acquire(lock, {},
                net::bind_executor(PlainExecutor{&task}, [&](ErrorCode error, const Lease&) { granted = !error; }));
  const auto run = task.get_future().get();
  EXPECT_FALSE(granted);
  run();
  EXPECT_TRUE(granted);
}

DLOCK_ON_BOTH_BACKENDS(AsioHandlerTest);

// --- Ends ------------------------------------------------------------------------------------------------------------

class AsioEndTest : public AsioTest {};

TEST_P(AsioEndTest, EndOfTheClient_CompletesItsOperationsOnTheExecutor) {
  const Lease held = others.acquire();
  std::optional<Client> short_lived = connect(url);
  DistributedLock waiting = short_lived->make_lock("a");
  Lease lease = short_lived->make_lock("b").acquire();
  std::vector<ErrorCode> errors;
  const auto acquire = [&] {
    async_acquire(waiting, {}, net::bind_executor(io, [&](ErrorCode error, const Lease& none) {
                    errors.push_back(error);
                    EXPECT_FALSE(none.has_value());
                  }));
  };
  acquire();
  EXPECT_EQ(io.poll(), 0U);
  short_lived.reset();
  acquire();  // after the end
  std::optional<bool> ours;
  async_release(lease, net::bind_executor(io, [&](ErrorCode, bool was_ours) { ours = was_ours; }));
  EXPECT_TRUE(errors.empty() && !ours);
  io.run();
  ASSERT_EQ(errors.size(), 2U);
  for (const ErrorCode& error : errors) EXPECT_TRUE(error == errc::closed);
  EXPECT_EQ(ours, false);
}

TEST_P(AsioEndTest, EndOfAnIoContext_DestroysThePendingCoroutineAndItsLease) {
  const Lease held = others.acquire();
  auto witness = std::make_shared<int>();
  const std::weak_ptr<int> coroutine = witness;
  {
    net::io_context short_lived;
    net::co_spawn(
        short_lived,
        [&, witness = std::move(witness)]() -> net::awaitable<void> {
          const Lease first = co_await async_acquire(client.make_lock("first"), {}, net::use_awaitable);
          EXPECT_TRUE(first.held());
          (void)co_await async_acquire(lock, {}, net::use_awaitable);
          ADD_FAILURE() << "it went on";
        },
        net::detached);
    while (client.stats().waiting == 0) short_lived.run_for(1ms);
    EXPECT_FALSE(coroutine.expired());
  }
  EXPECT_TRUE(coroutine.expired());
  expect_free("first");                                // the lease in the coroutine was released
  await([&] { return client.stats().waiting == 0; });  // the wait was cancelled
}

// Starts another acquire when it is destroyed.
struct Restless {
  DistributedLock* lock;
  net::io_context* io;
  bool* called;

  ~Restless() {
    if (lock == nullptr) return;
    async_acquire(*lock, {}, net::bind_executor(*io, [called = called](ErrorCode, const Lease&) { *called = true; }));
  }
};

TEST_P(AsioEndTest, EndOfAnIoContext_ReleasesGrantsAndDiscardsAcquires) {
  {
    net::io_context short_lived;
    async_acquire(lock, {}, net::bind_executor(short_lived, [](ErrorCode, const Lease&) { ADD_FAILURE(); }));
    await([&] { return other.inspect("a").held; });
  }
  expect_free("a");
  bool called = false;
  {
    const Lease held = others.acquire();
    net::io_context short_lived;
    auto restless = std::make_shared<Restless>(Restless{nullptr, &short_lived, &called});
    restless->lock = &lock;
    async_acquire(lock, {}, net::bind_executor(short_lived, [restless](ErrorCode, const Lease&) { ADD_FAILURE(); }));
  }
  EXPECT_FALSE(called);
  await([&] { return client.stats().waiting == 0; });
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
  const auto pending = std::make_shared<detail::PendingOperations>();
  const auto operation = std::make_shared<int>();
  {
    const detail::PendingOperations::Place place(pending, operation, std::stop_source());
    EXPECT_EQ(operation.use_count(), 2);
  }
  EXPECT_EQ(operation.use_count(), 1) << "an operation that was not started";
}

DLOCK_ON_BOTH_BACKENDS(AsioEndTest);

}  // namespace
}  // namespace dlock::test
