// A job that only one machine runs at a time, with a time limit for all of it: the wait for the lock and the work.
//
//   asio_job [URL]
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <exception>
#include <iostream>
#include <string>

#include <dlock/asio.hpp>
#include <dlock/dlock.hpp>

using namespace asio::experimental::awaitable_operators;
using namespace std::chrono_literals;
using asio::use_awaitable;

namespace {

asio::awaitable<void> write_report(dlock::DistributedLock& lock) {
  dlock::Lease lease = co_await dlock::async_acquire(lock, {}, use_awaitable);
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (int page = 1; page <= 3 && lease.held(); ++page) {  // check before each step
    timer.expires_after(1ms);
    co_await timer.async_wait(use_awaitable);
  }
  // True: the lock was held throughout.
  const bool was_ours = co_await dlock::async_release(lease, use_awaitable);
  std::cout << (was_ours ? "the report is written\n" : "the lock was lost: the report may be incomplete\n");
}

// When the time is over, the wait for the lock ends, or the work: then the lease's destructor releases the lock.
asio::awaitable<void> write_report_within(std::chrono::milliseconds limit, dlock::DistributedLock& lock) {
  asio::steady_timer timer(co_await asio::this_coro::executor, limit);
  const auto first = co_await (write_report(lock) || timer.async_wait(use_awaitable));
  if (first.index() == 1) std::cout << "the time is over\n";
}

asio::awaitable<void> run(const dlock::Client& client) {
  dlock::DistributedLock lock = client.make_lock("nightly-report");
  co_await write_report_within(1min, lock);
  dlock::Lease held = co_await dlock::async_acquire(lock, {}, use_awaitable);  // as another machine might
  co_await write_report_within(20ms, lock);
  (void)co_await dlock::async_release(held, use_awaitable);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "memory://";
  try {
    const dlock::Client client = dlock::connect(url);
    asio::io_context io;
    asio::co_spawn(io, run(client), [](std::exception_ptr problem) {
      if (problem) std::rethrow_exception(problem);
    });
    io.run();
  } catch (const std::exception& e) {
    std::cerr << "asio_job: " << e.what() << '\n';
    return 1;
  }
}
