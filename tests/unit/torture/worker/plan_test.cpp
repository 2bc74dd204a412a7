#include "torture/worker/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "torture/rig/scratch_directory.hpp"

namespace dlock::torture {
namespace {

TEST(PlanTest, ComesBackAsItWasSaved) {
  const rig::ScratchDirectory scratch;
  const Plan plan{.process = 3,
                  .seed = 18446744073709551615U,
                  .history = "/h",
                  .board = "/b",
                  .resource = "/r",
                  .seats = 8,
                  .first_seat = 4,
                  .threads = 2,
                  .locks = {"a", "b/\"c\""},
                  .lock_kind = LockKind::semaphore,
                  .permits = 3,
                  .lease = std::chrono::milliseconds(1500),
                  .fixed_leases = true};
  save(plan, scratch.path() + "/plan");
  const Plan loaded = load_plan(scratch.path() + "/plan");
  EXPECT_EQ(loaded.process, 3);
  EXPECT_EQ(loaded.seed, 18446744073709551615U);
  EXPECT_EQ(loaded.history, "/h");
  EXPECT_EQ(loaded.board, "/b");
  EXPECT_EQ(loaded.resource, "/r");
  EXPECT_EQ(loaded.seats, 8U);
  EXPECT_EQ(loaded.first_seat, 4U);
  EXPECT_EQ(loaded.threads, 2U);
  EXPECT_THAT(loaded.locks, testing::ElementsAre("a", "b/\"c\""));
  EXPECT_EQ(loaded.lock_kind, LockKind::semaphore);
  EXPECT_EQ(loaded.permits, 3U);
  EXPECT_EQ(loaded.lease, std::chrono::milliseconds(1500));
  EXPECT_TRUE(loaded.fixed_leases);
}

TEST(PlanTest, WhatIsNoPlanIsRefusedByName) {
  const rig::ScratchDirectory scratch;
  const std::string file = scratch.path() + "/plan";
  const auto refused = [&](const std::string& text) {
    std::ofstream(file) << text;
    try {
      (void)load_plan(file);
      ADD_FAILURE() << text;
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(file));
    }
  };
  refused("");
  refused("{}");
  save({.seats = 1, .first_seat = 1, .threads = 1, .locks = {"a"}}, file);
  EXPECT_THROW((void)load_plan(file), std::runtime_error) << "it has a seat that is not there";
  save({.seats = 2, .locks = {}}, file);
  EXPECT_THROW((void)load_plan(file), std::runtime_error) << "it has no locks";
  EXPECT_THROW((void)load_plan(scratch.path() + "/none"), std::runtime_error);
}

}  // namespace
}  // namespace dlock::torture
