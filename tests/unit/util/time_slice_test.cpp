#include "util/time_slice.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <thread>

namespace dlock::util {
namespace {

// Of the calling thread.
int policy() {
  return ::sched_getscheduler(0);
}
int niceness() {
  return ::getpriority(PRIO_PROCESS, 0);
}
void become(int wanted) {
  const sched_param none{};
  ASSERT_EQ(::sched_setscheduler(0, wanted, &none), 0);
}

TEST(TimeSlice, OfAThreadIsAllThatChanges) {
  std::thread([] {
    ASSERT_EQ(::setpriority(PRIO_PROCESS, 0, niceness() + 1), 0);
    const int nice = niceness();
    ask_for_short_time_slices();
    EXPECT_EQ(policy(), SCHED_OTHER);
    EXPECT_EQ(niceness(), nice);
  }).join();
}

TEST(TimeSlice, OfAThreadUnderOtherRulesIsTheirBusiness) {
  for (const int rules : {SCHED_BATCH, SCHED_IDLE}) {
    std::thread([rules] {
      become(rules);
      ask_for_short_time_slices();
      EXPECT_EQ(policy(), rules);
    }).join();
  }
}

}  // namespace
}  // namespace dlock::util
