// dlock in the destructors of static objects, which may run when all function-local statics have been destroyed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>

#include <dlock/client.hpp>
#include <dlock/error.hpp>
#include <dlock/recursive_lock.hpp>

#include "tests/support/simple_backend.hpp"

namespace dlock {
namespace {

// Made before main() and so before all that is made at its first use, and destroyed after it.
struct AtTheEnd {
  std::function<void()> action;
  ~AtTheEnd() {
    if (action) action();
  }
};
AtTheEnd at_the_end;

void check(bool ok, int number) {
  if (!ok) _exit(number);
}

void use_everything() {
  const auto service = std::make_shared<test::SimpleService>();
  const Client client = connect("simple://", {}, service->factory());
  DistributedLock lock = client.make_lock("x");
  Lease lease = lock.acquire();
  check(lease.held(), 1);
  check(lease.name() == "x", 2);
  check(lease.release(), 3);
  check(Lease().name().empty(), 4);
  lock.lock();
  check(lock.lease().held(), 5);
  lock.unlock();
  check(!lock.lease().held(), 6);
  RecursiveLock recursive(client.make_lock("y"));
  check(!recursive.lease().has_value(), 7);
  check(recursive.try_lock_for(std::chrono::seconds(1)), 8);
  recursive.unlock();
  try {
    (void)connect("nonesuch://");
    check(false, 9);
  } catch (const Error& e) {
    check(e.code() == errc::invalid_argument, 10);
    check(e.code().message() == "invalid argument", 11);
  }
}

TEST(StaticDestruction, ClientsCanBeMadeAndUsedUntilTheVeryEnd) {
  EXPECT_EXIT(
      {
        alarm(30);  // a hang ends as a signal
        use_everything();
        at_the_end.action = use_everything;
        std::exit(0);  // NOLINT(concurrency-mt-unsafe): what this is about
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace dlock
