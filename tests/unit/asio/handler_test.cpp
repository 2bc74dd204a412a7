// The effects of a handler's properties: executor, allocator; and outstanding work.
#include <atomic>
#include <cstddef>
#include <future>
#include <mutex>
#include <optional>
#include <vector>

#include "asio_test.hpp"

namespace dlock::test {
namespace {

class AsioHandlerTest : public AsioTest {};

TEST_P(AsioHandlerTest, AHandlerRunsOnItsExecutorAndNeverInsideTheCall) {
  std::optional<std::thread::id> ran_on;
  async_acquire(lock, {}, net::bind_executor(io, [&](ErrorCode error, const Lease& lease) {
                  EXPECT_FALSE(error);
                  EXPECT_TRUE(lease.held());
                  ran_on = std::this_thread::get_id();
                }));
  await([&] { return other.inspect("a").held; });
  EXPECT_FALSE(ran_on);
  io.run();
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST_P(AsioHandlerTest, AHandlerOfAFailureRunsOnItsExecutorToo) {
  bool ran = false;
  async_acquire(lock, {.wait = -1s}, net::bind_executor(io, [&](ErrorCode error, const Lease&) {
                  EXPECT_TRUE(error == errc::invalid_argument);
                  ran = true;
                }));
  EXPECT_FALSE(ran);
  io.run();
  EXPECT_TRUE(ran);
}

TEST_P(AsioHandlerTest, AHandlerWithoutAnExecutorMayBlock) {
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

TEST_P(AsioHandlerTest, HandlersOfAStrandRunOneAtATime) {
  constexpr int count = 40;
  net::thread_pool pool(4);
  auto strand = net::make_strand(pool);
  int granted = 0;  // data race if two run at once
  std::promise<void> all;
  for (int i = 0; i < count; ++i) {
    async_acquire(lock, {}, net::bind_executor(strand, [&](ErrorCode error, Lease lease) {
                    EXPECT_FALSE(error);
                    EXPECT_TRUE(strand.running_in_this_thread());
                    async_release(std::move(lease), net::detached);
                    if (++granted == count) all.set_value();
                  }));
  }
  all.get_future().get();
  pool.join();
  EXPECT_EQ(granted, count);
}

TEST_P(AsioHandlerTest, APendingOperationIsOutstandingWork) {
  Lease held = others.acquire();
  bool granted = false;
  async_acquire(lock, {}, net::bind_executor(io, [&](ErrorCode error, const Lease&) { granted = !error; }));
  EXPECT_EQ(io.poll(), 0U);
  EXPECT_FALSE(io.stopped());  // poll() stops an io_context without work
  EXPECT_TRUE(held.release());
  io.run();
  EXPECT_TRUE(granted);
  EXPECT_TRUE(io.stopped());
}

TEST_P(AsioHandlerTest, AnAnyIoExecutorKeepsItsWorkToo) {
  Lease held = others.acquire();
  bool granted = false;
  const net::any_io_executor executor = io.get_executor();
  async_acquire(lock, {}, net::bind_executor(executor, [&](ErrorCode error, const Lease&) { granted = !error; }));
  EXPECT_EQ(io.poll(), 0U);
  EXPECT_FALSE(io.stopped());
  EXPECT_TRUE(held.release());
  io.run();
  EXPECT_TRUE(granted);
}

// --- Allocator -------------------------------------------------------------------------------------------------------

struct Memory {
  std::mutex mutex;
  std::size_t in_use = 0;
  std::size_t allocations = 0;
  std::vector<std::thread::id> users;
};

template <class T>
class CountingAllocator {
 public:
  using value_type = T;
  explicit CountingAllocator(Memory& memory) noexcept : memory_(&memory) {}
  template <class U>
  CountingAllocator(const CountingAllocator<U>& allocator) noexcept  // NOLINT(google-explicit-constructor): rebinding
      : memory_(allocator.memory_) {}

  T* allocate(std::size_t n) {
    const std::lock_guard guard(memory_->mutex);
    memory_->in_use += n * sizeof(T);
    ++memory_->allocations;
    memory_->users.push_back(std::this_thread::get_id());
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* p, std::size_t n) noexcept {
    const std::lock_guard guard(memory_->mutex);
    memory_->in_use -= n * sizeof(T);
    memory_->users.push_back(std::this_thread::get_id());
    std::allocator<T>().deallocate(p, n);
  }
  template <class U>
  bool operator==(const CountingAllocator<U>& other) const noexcept {
    return memory_ == other.memory_;
  }

 private:
  template <class U>
  friend class CountingAllocator;
  Memory* memory_;
};

TEST_P(AsioHandlerTest, AnOperationUsesTheHandlersAllocatorOnTheHandlersThreadAndFreesItFirst) {
  Memory memory;
  std::optional<std::size_t> in_use;
  Lease held = others.acquire();
  async_acquire(
      lock, {},
      net::bind_allocator(CountingAllocator<int>(memory), net::bind_executor(io, [&](ErrorCode error, const Lease&) {
                            EXPECT_FALSE(error);
                            in_use = memory.in_use;
                          })));
  EXPECT_GT(memory.in_use, 0U);
  EXPECT_TRUE(held.release());
  io.run();
  EXPECT_EQ(in_use, 0U);
  EXPECT_EQ(memory.allocations, 1U);
  for (const std::thread::id user : memory.users) EXPECT_EQ(user, std::this_thread::get_id());
}

// --- Executors without an execution context --------------------------------------------------------------------------

// The least that Asio calls an executor.
struct PlainExecutor {
  std::vector<std::function<void()>>* tasks;
  std::mutex* mutex;

  template <class F>
  void execute(F&& f) const {
    const std::lock_guard guard(*mutex);
    tasks->emplace_back([kept = std::make_shared<std::decay_t<F>>(std::forward<F>(f))] { std::move (*kept)(); });
  }
  static constexpr net::execution::blocking_t query(net::execution::blocking_t) noexcept {
    return net::execution::blocking.never;
  }
  bool operator==(const PlainExecutor&) const noexcept = default;
};

TEST_P(AsioHandlerTest, AnExecutorNeedsNoExecutionContext) {
  std::vector<std::function<void()>> tasks;
  std::mutex mutex;
  bool granted = false;
  async_acquire(lock, {}, net::bind_executor(PlainExecutor{&tasks, &mutex}, [&](ErrorCode error, const Lease&) {
                  granted = !error;
                }));
  await([&] {
    const std::lock_guard guard(mutex);
    return !tasks.empty();
  });
  EXPECT_FALSE(granted);
  tasks.front()();
  EXPECT_TRUE(granted);
}

DLOCK_ON_BOTH_BACKENDS(AsioHandlerTest);

}  // namespace
}  // namespace dlock::test
