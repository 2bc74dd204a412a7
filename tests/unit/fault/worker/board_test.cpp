#include "tests/fault/worker/board.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "tests/support/scratch_directory.hpp"

namespace dlock::fault {
namespace {

class BoardTest : public testing::Test {
 protected:
  // Runs it in a child process, which ends with status 0 then, unless something stops it before.
  template <class Work>
  static pid_t in_child(Work work) {
    const pid_t child = ::fork();
    if (child == 0) {
      work();
      ::_exit(0);
    }
    return child;
  }
  static int wait_for(pid_t child) {
    int status = 0;
    while (::waitpid(child, &status, WUNTRACED) < 0 && errno == EINTR) {
    }
    return status;
  }

  test::ScratchDirectory scratch;
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

TEST_F(BoardTest, WhoeverStepsIntoTheTrapStandsStill) {
  board.set_trap(Step::looked);
  const pid_t child = in_child([&] {
    const Board own(file, 4);
    own.reach(3, Step::asking);
    own.reach(3, Step::looked);
  });
  EXPECT_TRUE(WIFSTOPPED(wait_for(child)));
  EXPECT_EQ(board.caught(), 3U);
  EXPECT_EQ(board.seat(3).step.load(), Step::looked);
  EXPECT_EQ(::kill(child, SIGCONT), 0);
  EXPECT_TRUE(WIFEXITED(wait_for(child)));
}

// A signal to a process may be taken by any of its threads, and the others go on meanwhile.
TEST_F(BoardTest, WhoeverStepsIntoTheTrapDoesNothingMoreThoughOtherThreadsAreThere) {
  for (int i = 0; i < 100; ++i) {
    board.seat(0).step.store(Step::idle);
    board.set_trap(Step::looked);
    const pid_t child = in_child([&] {
      const Board own(file, 4);
      std::jthread([&] {  // not the first thread, which is the one that takes signals if it can
        own.reach(0, Step::looked);
        own.reach(0, Step::wrote);
      })
          .join();
    });
    ASSERT_TRUE(WIFSTOPPED(wait_for(child)));
    ASSERT_EQ(board.seat(0).step.load(), Step::looked);
    EXPECT_EQ(::kill(child, SIGKILL), 0);
    (void)wait_for(child);
  }
}

TEST_F(BoardTest, ATrapCatchesOne) {
  board.set_trap(Step::granted);
  const pid_t first = in_child([&] { Board(file, 4).reach(0, Step::granted); });
  EXPECT_TRUE(WIFSTOPPED(wait_for(first)));
  const pid_t second = in_child([&] { Board(file, 4).reach(1, Step::granted); });
  EXPECT_TRUE(WIFEXITED(wait_for(second)));
  EXPECT_EQ(board.caught(), 0U);
  EXPECT_EQ(board.remove_trap(), 0U) << "it was sprung before it could be removed";
  EXPECT_EQ(::kill(first, SIGKILL), 0);
  (void)wait_for(first);
}

TEST_F(BoardTest, ATrapThatWasRemovedCatchesNobody) {
  board.set_trap(Step::granted);
  EXPECT_EQ(board.remove_trap(), std::nullopt);
  const pid_t child = in_child([&] { Board(file, 4).reach(0, Step::granted); });
  EXPECT_TRUE(WIFEXITED(wait_for(child)));
  EXPECT_EQ(board.caught(), std::nullopt);
}

TEST_F(BoardTest, AnEarlierVictimIsForgottenWithTheNextTrap) {
  board.set_trap(Step::granted);
  const pid_t child = in_child([&] { Board(file, 4).reach(0, Step::granted); });
  EXPECT_TRUE(WIFSTOPPED(wait_for(child)));
  board.set_trap(Step::looked);
  EXPECT_EQ(board.caught(), std::nullopt);
  EXPECT_EQ(::kill(child, SIGKILL), 0);
  (void)wait_for(child);
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
}  // namespace dlock::fault
