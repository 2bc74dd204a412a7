#include <boost/asio.hpp>
#include <chrono>
#include <exception>
#include <stdexcept>

#include <dlock/boost_asio.hpp>
#include <dlock/dlock.hpp>

using namespace std::chrono_literals;

void use_boost(dlock::DistributedLock& lock) {
  boost::asio::io_context io;
  bool was_ours = false;
  boost::asio::co_spawn(
      io,
      [&]() -> boost::asio::awaitable<void> {
        dlock::Lease lease = co_await dlock::async_acquire(lock, {.wait = 5s}, boost::asio::use_awaitable);
        was_ours = co_await dlock::async_release(lease, boost::asio::use_awaitable);
      },
      [](std::exception_ptr problem) {
        if (problem) std::rethrow_exception(problem);
      });
  io.run();
  if (!was_ours) throw std::runtime_error("a lease was lost");
}
