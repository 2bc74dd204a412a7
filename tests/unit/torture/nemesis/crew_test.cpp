#include "torture/nemesis/crew.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "torture/rig/scratch_directory.hpp"

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;

class CrewTest : public testing::Test {
 protected:
  // A worker is this line of shell, with the plan as $0.
  CrewConfig config(const std::string& worker) const {
    return {.command = {"/bin/sh", "-c", worker},
            .url = "file:///nowhere",
            .histories = scratch.path(),
            .plans = scratch.path(),
            .workers = 2,
            .plan = {.seats = 4, .threads = 2, .locks = {"a"}}};
  }
  [[nodiscard]] std::vector<std::pair<Kind, int>> noted() const {
    std::vector<std::pair<Kind, int>> all;
    for (const Event& event : read_history(file)) all.emplace_back(event.kind, event.subject);
    return all;
  }

  rig::ScratchDirectory scratch;
  std::string file = scratch.path() + "/run.jsonl";
  HistoryFile notes{file};
};

TEST_F(CrewTest, EachHasAPlanOfItsOwn) {
  const Crew crew(config("exec sleep 1000"), notes);
  EXPECT_EQ(crew.size(), 2U);
  EXPECT_EQ(crew.member_at_seat(0), 0U);
  EXPECT_EQ(crew.member_at_seat(3), 1U);
  const Plan first = load_plan(scratch.path() + "/process-1.plan");
  const Plan second = load_plan(scratch.path() + "/process-2.plan");
  EXPECT_EQ(first.first_seat, 0U);
  EXPECT_EQ(second.first_seat, 2U);
  EXPECT_NE(first.seed, second.seed);
  EXPECT_NE(first.history, second.history);
}

TEST_F(CrewTest, WhatIsDoneToThemIsNoted) {
  std::vector<pid_t> ended;
  CrewConfig wanted = config("exec sleep 1000");
  wanted.ended = [&](pid_t pid) { ended.push_back(pid); };
  Crew crew(wanted, notes);
  crew.stop(1);
  EXPECT_TRUE(crew.stopped(1));
  crew.resume(1);
  EXPECT_FALSE(crew.stopped(1));
  const pid_t victim = crew.pid(0);
  crew.kill(0);
  EXPECT_THAT(ended, testing::ElementsAre(victim));
  EXPECT_NE(crew.pid(0), victim) << "another is there";
  EXPECT_THAT(noted(), testing::ElementsAre(std::pair(Kind::stopped, 2), std::pair(Kind::resumed, 2),
                                            std::pair(Kind::stopped, 1), std::pair(Kind::killed, 1)));
  EXPECT_EQ(load_plan(scratch.path() + "/process-3.plan").first_seat, 0U);
}

TEST_F(CrewTest, OneThatWasKilledWhileItStoodStillNeedNotGoOn) {
  Crew crew(config("exec sleep 1000"), notes);
  crew.stop(0);
  crew.kill(0);
  crew.resume(0);
  EXPECT_THAT(noted(), testing::ElementsAre(std::pair(Kind::stopped, 1), std::pair(Kind::killed, 1)));
}

TEST_F(CrewTest, WhoEndsByItselfHasCrashedAndIsReplaced) {
  // The first two end at once, their successors do not.
  Crew crew(config("case $0 in *process-[12].plan) echo oh; exit 3;; esac; exec sleep 1000"), notes);
  for (std::size_t i = 0; i < 2; ++i) {
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(crew.pid(i)), &info, WEXITED | WNOWAIT), 0);
  }
  crew.look_after();
  crew.look_after();
  const auto events = read_history(file);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].kind, Kind::crashed);
  EXPECT_THAT(events[0].word, testing::HasSubstr("status 3"));
  EXPECT_THAT(events[0].word, testing::HasSubstr("oh"));
}

TEST_F(CrewTest, WhoDoesNotEndIsResidue) {
  Crew crew(config("case $0 in *process-1.plan) exit 0;; esac; exec sleep 1000"), notes);
  crew.stop(1);
  crew.await_end(1ms);
  const auto all = noted();
  EXPECT_THAT(all, testing::Contains(std::pair(Kind::killed, 2)));
  const auto events = read_history(file);
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const Event& event) {
    return event.kind == Kind::residue && event.word == "process 2 does not end";
  }));
}

}  // namespace
}  // namespace dlock::torture
