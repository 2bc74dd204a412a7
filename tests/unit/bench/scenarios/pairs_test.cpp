#include "bench/scenarios/pairs.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "torture/rig/scratch_directory.hpp"

namespace dlock::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Release, OfALeaseThatWasLostIsAnError) {
  const Client client = connect("memory://");
  Lease lease = client.make_lock("x").acquire();
  ASSERT_TRUE(client.break_lock("x"));
  EXPECT_THROW(release(lease), std::runtime_error);
}

TEST(GrantedLease, IsWhatWasAskedForWhereTheServiceGrantsThat) {
  const Client client = connect("memory://", {.lease = seconds(7)});
  EXPECT_EQ(granted_lease(client, "x", {}), seconds(7));
  EXPECT_EQ(granted_lease(client, "x", {.lease = milliseconds(2500)}), milliseconds(2500));
  EXPECT_TRUE(client.make_lock("x").try_acquire()) << "it is free again";
}

TEST(GrantedLease, IsZeroWhereItDoesNotRunOut) {
  const rig::ScratchDirectory directory;
  const Client client = connect("file://" + directory.path());
  EXPECT_EQ(granted_lease(client, "x", {}), seconds(0));
}

TEST(DlockPairs, GiveTheLockBackEachTime) {
  const Client client = connect("memory://");
  const Crowd::Work work = dlock_pairs(client, "x", {});
  EXPECT_EQ(client.stats().released, 1U) << "the first pair is made at once";
  EXPECT_GT(work({}), Clock::duration(0));
  EXPECT_EQ(client.stats().released, 2U);
  EXPECT_EQ(client.stats().held, 0U);
}

TEST(DlockPairs, AreCancelledByTheStop) {
  const Client client = connect("memory://");
  const Lease held = client.make_lock("x").acquire();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW((void)dlock_pairs(client, "x", stop.get_token()), Error);
}

TEST(LockName, IsBelowNamesOfOurs) {
  EXPECT_EQ(lock_name("mix/7"), "dlock-bench/mix/7");
}

}  // namespace
}  // namespace dlock::bench
