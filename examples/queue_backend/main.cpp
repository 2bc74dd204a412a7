// Two clients of the lock service of queue_server.py, which queue for a lock.
//
//   python3 queue_server.py 0 ./queue_backend
#include <chrono>
#include <future>
#include <iostream>
#include <optional>

#include <dlock/dlock.hpp>

#include "queue_backend.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: queue_backend queue://ADDRESS:PORT\n";
    return 2;
  }
  try {
    dlock::register_backend("queue", example::make_queue_backend);
    const dlock::Client one = dlock::connect(argv[1], {.label = "one"});
    const dlock::Client two = dlock::connect(argv[1], {.label = "two"});

    std::optional<dlock::Lease> lease = one.make_lock("orders/42").acquire();
    std::cout << "one holds it: " << std::boolalpha << lease->held() << '\n';
    dlock::DistributedLock lock = two.make_lock("orders/42");
    std::cout << "two tries: " << (lock.try_acquire() ? "granted" : "busy") << '\n';

    std::future<dlock::Lease> waiting = std::async(std::launch::async, [&lock] { return lock.acquire(); });
    while (one.inspect("orders/42").waiters != 1U) continue;
    const dlock::FencingToken first = lease->token();
    lease.reset();
    std::cout << "two waited and has a greater token: " << (waiting.get().token() > first) << '\n';
  } catch (const dlock::Error& e) {
    std::cerr << "queue_backend: " << e.what() << '\n';
    return 1;
  }
}
