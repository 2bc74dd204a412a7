// Workers share with the run a board, a plan, a resource with tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "torture/rig/scratch_directory.hpp"
#include "torture/worker/board.hpp"
#include "torture/worker/plan.hpp"
#include "torture/worker/resource.hpp"

namespace dlock::torture {
namespace {

class BoardTest : public testing::Test {
 protected:
  [[nodiscard]] std::size_t await_caught() const {
    while (!board.caught()) std::this_thread::yield();
    return *board.caught();
  }

  rig::ScratchDirectory scratch;
  std::string file = scratch.path() + "/board";
  Board board{file, 4};
};

TEST_F(BoardTest, Boards_ShareAFile) {
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

TEST_F(BoardTest, Trap_StopsOneContenderUntilItIsLetGo) {
  board.set_trap(Step::looked);
  std::atomic<bool> went_on = false;
  std::jthread contender([&] {
    board.reach(3, Step::asking);
    board.reach(3, Step::looked);
    went_on.store(true);
  });
  EXPECT_EQ(await_caught(), 3U);
  EXPECT_EQ(board.seat(3).step.load(), Step::looked);
  board.reach(1, Step::looked);  // comes back
  EXPECT_EQ(board.caught(), 3U);
  EXPECT_EQ(board.remove_trap(), 3U) << "it was sprung before it could be removed";
  EXPECT_FALSE(went_on.load());
  board.let_go();
  contender.join();
  EXPECT_TRUE(went_on.load());
}

TEST_F(BoardTest, CaughtContender_GoesOnWithTheNextTrapOrAtTheEnd) {
  board.set_trap(Step::granted);
  std::jthread contender([&] { board.reach(0, Step::granted); });
  (void)await_caught();
  board.set_trap(Step::looked);
  contender.join();
  EXPECT_EQ(board.caught(), std::nullopt);
  EXPECT_EQ(board.remove_trap(), std::nullopt);
  board.set_trap(Step::granted);
  contender = std::jthread([&] { board.reach(0, Step::granted); });
  (void)await_caught();
  board.call_it_a_day();
}

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(PlanTest, SavedPlan_IsLoaded) {
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
  const std::string text = text_of(scratch.path() + "/plan");
  for (const char* part :
       {"\"process\": 3", "18446744073709551615", "\"/h\"", "\"/b\"", "\"/r\"", "\"seats\": 8", "\"first_seat\": 4",
        "\"threads\": 2", R"("b/\"c\"")", "semaphore", "\"permits\": 3", "1500000000", "true"}) {
    EXPECT_THAT(text, testing::HasSubstr(part));
  }
  save(load_plan(scratch.path() + "/plan"), scratch.path() + "/again");
  EXPECT_EQ(text_of(scratch.path() + "/again"), text);
}

TEST(PlanTest, FileThatIsNoPlan_IsRefusedByName) {
  const rig::ScratchDirectory scratch;
  const std::string file = scratch.path() + "/plan";
  const Plan seat_that_is_not_there{.seats = 1, .first_seat = 1, .threads = 1, .locks = {"a"}};
  const Plan without_locks{.seats = 2, .locks = {}};
  for (const auto& write : std::vector<std::function<void()>>{[] {},  // there is no such file
                                                              [&] { std::ofstream(file) << "{}"; },
                                                              [&] { save(seat_that_is_not_there, file); },
                                                              [&] { save(without_locks, file); }}) {
    write();
    try {
      (void)load_plan(file);
      ADD_FAILURE() << text_of(file);
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(file));
    }
  }
}

// A writer of long ago must not write under a reader who has come since. Readers may learn of their tokens in any
// order.
TEST(ResourceTest, OlderAccess_IsRefusedAndNoted) {
  const rig::ScratchDirectory scratch;
  const std::string socket = scratch.path() + "/socket";
  const std::string history = scratch.path() + "/resource.jsonl";
  constexpr auto write = Mode::exclusive;
  constexpr auto read = Mode::shared;
  EXPECT_THROW(ResourceClient client(socket), std::system_error) << "no server listens";
  const Resource resource(socket, history, {"a", "b"}, LockKind::read_write);
  ResourceClient one(socket);
  ResourceClient other(socket);
  struct Access {
    ResourceClient& client;
    std::size_t lock;
    Mode mode;
    std::uint64_t token;
    bool taken;
  };
  const std::vector<Access> accesses{{one, 0, write, 5, true},  {other, 0, write, 5, true}, {one, 0, read, 4, false},
                                     {other, 0, read, 9, true}, {one, 0, read, 7, true},    {other, 0, write, 8, false},
                                     {one, 0, read, 8, true},   {other, 1, write, 1, true}};
  for (const auto& [client, lock, mode, token, taken] : accesses) {
    EXPECT_EQ(client.access(lock, mode, FencingToken(token)), taken) << token;
  }
  EXPECT_THROW((void)one.access(2, write, FencingToken(1)), std::system_error) << "there is no such lock";
  { const ResourceClient gone(socket); }
  EXPECT_TRUE(other.access(0, write, FencingToken(9)));
  const auto events = read_history(history);
  ASSERT_EQ(events.size(), accesses.size() + 1);
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    EXPECT_EQ(events[i].kind, Kind::served);
    EXPECT_EQ(events[i].lock, accesses[i].lock == 0 ? "a" : "b");
    EXPECT_EQ(events[i].lock_kind, LockKind::read_write);
    EXPECT_EQ(events[i].mode, accesses[i].mode);
    EXPECT_EQ(events[i].token, FencingToken(accesses[i].token));
    EXPECT_EQ(events[i].yes, accesses[i].taken);
  }
}

}  // namespace
}  // namespace dlock::torture
