// The guardian by itself; what it does for the command is in descendants_test.cpp and loss_test.cpp.
#include "cli/guardian.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>

#include "support/process.hpp"

namespace dlock::cli::test {
namespace {

// Continued, it would find orders that are long out of date, and end a command whose lock is held.
TEST(Guardian, IsKilledWhenItWasStoppedForSoLongThatItMissesOrders) {
  Guardian guardian;
  ASSERT_EQ(::kill(guardian.pid(), SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(guardian.pid(), &status, WUNTRACED), guardian.pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  const Watched watched(guardian.pid());
  while (guardian.watch({}, {}, TimePoint::max())) {
  }
  EXPECT_TRUE(watched.wait_for_death());
}

}  // namespace
}  // namespace dlock::cli::test
