#include "torture/worker/board.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "torture/rig/scratch_directory.hpp"

namespace dlock::torture {
namespace {

class BoardTest : public testing::Test {
 protected:
  rig::ScratchDirectory scratch;
  std::string file = scratch.path() + "/board";
  Board board{file, 4};
};

TEST_F(BoardTest, WhatOneSaysAnotherReads) {
  const Board other(file, 4);
  other.seat(2).process.store(7);
  other.reach(2, Step::asking);
  EXPECT_EQ(board.seat(2).process.load(), 7);
  EXPECT_EQ(board.seat(2).step.load(), Step::asking);
  EXPECT_EQ(board.seat(1).process.load(), 0);
  EXPECT_FALSE(other.day_is_over());
  board.call_it_a_day();
  EXPECT_TRUE(other.day_is_over());
}

TEST_F(BoardTest, WhoeverStepsIntoTheTrapDoesNotGoOnUntilItIsLetGo) {
  board.set_trap(Step::looked);
  std::atomic<bool> went_on = false;
  std::jthread contender([&] {
    board.reach(3, Step::asking);
    board.reach(3, Step::looked);
    went_on.store(true);
  });
  while (!board.caught()) std::this_thread::yield();
  EXPECT_EQ(board.caught(), 3U);
  EXPECT_EQ(board.seat(3).step.load(), Step::looked);
  EXPECT_FALSE(went_on.load());
  board.let_go();
  contender.join();
  EXPECT_TRUE(went_on.load());
}

TEST_F(BoardTest, ATrapCatchesOne) {
  board.set_trap(Step::granted);
  std::jthread first([&] { board.reach(0, Step::granted); });
  while (!board.caught()) std::this_thread::yield();
  board.reach(1, Step::granted);  // comes back
  EXPECT_EQ(board.caught(), 0U);
  EXPECT_EQ(board.remove_trap(), 0U) << "it was sprung before it could be removed";
  board.let_go();
}

TEST_F(BoardTest, WhoeverIsCaughtGoesOnAtTheEndOfTheDay) {
  board.set_trap(Step::granted);
  std::jthread contender([&] { board.reach(0, Step::granted); });
  while (!board.caught()) std::this_thread::yield();
  board.call_it_a_day();
}

TEST_F(BoardTest, ATrapThatWasRemovedCatchesNobody) {
  board.set_trap(Step::granted);
  EXPECT_EQ(board.remove_trap(), std::nullopt);
  board.reach(0, Step::granted);  // comes back
  EXPECT_EQ(board.caught(), std::nullopt);
}

TEST_F(BoardTest, AnEarlierVictimIsForgottenWithTheNextTrap) {
  board.set_trap(Step::granted);
  std::jthread contender([&] { board.reach(0, Step::granted); });
  while (!board.caught()) std::this_thread::yield();
  board.set_trap(Step::looked);
  contender.join();
  EXPECT_EQ(board.caught(), std::nullopt);
}

TEST_F(BoardTest, AFileThatCannotBeMadeIsNamed) {
  try {
    const Board bad("/proc/nowhere/board", 1);
    FAIL();
  } catch (const std::system_error& error) {
    EXPECT_NE(std::string(error.what()).find("/proc/nowhere/board"), std::string::npos);
  }
}

}  // namespace
}  // namespace dlock::torture
