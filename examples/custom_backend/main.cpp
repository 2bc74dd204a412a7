// A program that brings its own backend: registers it, then uses it like any other.
#include <iostream>

#include <dlock/dlock.hpp>

#include "table_backend.hpp"

int main() {
  try {
    dlock::register_backend("table", example::make_table_backend(std::make_shared<example::LockTable>()));

    const dlock::Client client = dlock::connect("table://");
    dlock::DistributedLock lock = client.make_lock("orders/42");
    const dlock::Lease lease = lock.acquire();
    std::cout << "held: " << std::boolalpha << lease.held() << '\n';
    std::cout << "another try: " << (lock.try_acquire() ? "granted" : "busy") << '\n';
  } catch (const dlock::Error& e) {
    std::cerr << "custom_backend: " << e.what() << '\n';
    return 1;
  }
}
