// Acquires locks on an event loop of its own version of Asio.
#include <asio.hpp>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <future>
#include <iostream>
#include <stdexcept>

#include <dlock/asio.hpp>
#include <dlock/dlock.hpp>

#if WITH_BOOST
void use_boost(dlock::DistributedLock& lock);
#endif

namespace {

using namespace std::chrono_literals;

static_assert(ASIO_VERSION == 199900, "the copy of Asio that this program is to use");

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

asio::awaitable<void> use(dlock::DistributedLock& lock) {
  dlock::Lease lease = co_await dlock::async_acquire(lock, {.wait = 5s}, asio::use_awaitable);
  require(lease.held(), "a granted lease is not held");
  const bool was_ours = co_await dlock::async_release(lease, asio::use_awaitable);
  require(was_ours, "a lease was lost");
}

}  // namespace

int main() {
  try {
    const dlock::Client client = dlock::connect("memory://");
    dlock::DistributedLock lock = client.make_lock("orders/42");

    // The client's thread runs its own Asio.
    std::promise<void> granted;
    lock.async_acquire({}, [&](std::error_code, dlock::Lease) { granted.set_value(); });
    granted.get_future().get();
    require(lock.acquire().held(), "the lock is not free");
    require(asio_calls == 0, "dlock called a function of the program's Asio");

    asio::io_context io;
    asio::co_spawn(io, use(lock), [](std::exception_ptr problem) {
      if (problem) std::rethrow_exception(problem);
    });
    while (io.run_one() > 0) {
    }
    require(asio_calls > 0, "the program called a function of dlock's Asio");
#if WITH_BOOST
    use_boost(lock);
#endif
    std::cout << "Asio works\n";
    return EXIT_SUCCESS;
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return EXIT_FAILURE;
  }
}
