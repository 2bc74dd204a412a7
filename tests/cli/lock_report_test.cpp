// What is shown about locks of each kind.
#include "cli/lock_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include <nlohmann/json.hpp>

#include "cli/json.hpp"

namespace dlock::cli {
namespace {

using namespace std::chrono_literals;

const LockInfo held_lock{
    .name = "job", .held = true, .holder = "a:1:x", .token = FencingToken(7), .remaining = 1500ms, .waiters = 2};

const LockInfo readers{
    .name = "prices",
    .held = true,
    .holder = "b:2:y",
    .token = FencingToken(9),
    .remaining = 20s,
    .kind = LockKind::read_write,
    .holders = {{.holder = "a:1:x", .mode = Mode::shared, .token = FencingToken(8)},
                {.holder = "b:2:y", .mode = Mode::shared, .token = FencingToken(9), .remaining = 20s}}};

const LockInfo permits{.name = "uploads",
                       .held = true,
                       .holder = "a:1:x",
                       .token = FencingToken(5),
                       .kind = LockKind::semaphore,
                       .holders = {{.holder = "a:1:x", .token = FencingToken(5)}},
                       .permits = 3};

const LockInfo leader{.name = "scheduler",
                      .held = true,
                      .holder = "a:1:x",
                      .token = FencingToken(4),
                      .kind = LockKind::election,
                      .value = "10.0.0.7:80"};

std::string status_of(const LockInfo& info) {
  return status_text(to_json(info));
}

std::string list_of(const std::vector<LockInfo>& infos) {
  Json locks = Json::array();
  for (const LockInfo& info : infos) locks.push_back(to_json(info));
  return list_text(locks);
}

TEST(StatusText, OfALockHasOneHolder) {
  EXPECT_EQ(status_of(held_lock),
            "name       job\n"
            "state      held\n"
            "holder     a:1:x\n"
            "token      7\n"
            "remaining  1.5 s\n"
            "waiters    2\n");
}

TEST(StatusText, OfAReadWriteLockHasAllHolders) {
  EXPECT_EQ(status_of(readers),
            "name     prices\n"
            "kind     read-write\n"
            "state    shared\n"
            "held by  a:1:x       token 8\n"
            "         b:2:y       token 9, 20.0 s\n");
  EXPECT_EQ(status_of({.name = "prices", .token = FencingToken(9), .kind = LockKind::read_write}),
            "name        prices\n"
            "kind        read-write\n"
            "state       free\n"
            "last token  9\n");
}

TEST(StatusText, OfASemaphoreHasPermits) {
  EXPECT_EQ(status_of(permits),
            "name     uploads\n"
            "kind     semaphore\n"
            "state    held\n"
            "permits  1 of 3 are taken\n"
            "held by  a:1:x             token 5\n");
}

TEST(StatusText, OfAnElectionHasTheValue) {
  EXPECT_EQ(status_of(leader),
            "name    scheduler\n"
            "kind    election\n"
            "state   held\n"
            "value   10.0.0.7:80\n"
            "holder  a:1:x\n"
            "token   4\n");
}

TEST(StatusText, ShowsNoControlCharacters) {
  LockInfo info = leader;
  info.value = "\x1B[31m";
  EXPECT_THAT(status_of(info), testing::HasSubstr("value   \\x1b[31m\n"));
}

TEST(ListText, HasColumnsForItsKind) {
  EXPECT_EQ(list_of({held_lock}),
            "NAME  STATE  TOKEN  HOLDER\n"
            "job   held   7      a:1:x\n");
  EXPECT_EQ(list_of({readers, {.name = "rates", .kind = LockKind::read_write}}),
            "NAME    STATE   TOKEN  HOLDERS\n"
            "prices  shared  9      a:1:x, b:2:y\n"
            "rates   free    -      -\n");
  EXPECT_EQ(list_of({permits}),
            "NAME     STATE  PERMITS  TOKEN  HOLDERS\n"
            "uploads  held   1 of 3   5      a:1:x\n");
  EXPECT_EQ(list_of({leader}),
            "NAME       STATE  TOKEN  HOLDER  VALUE\n"
            "scheduler  held   4      a:1:x   10.0.0.7:80\n");
  EXPECT_EQ(list_of({}), "");
}

TEST(LockJson, HasTheHoldersOfEachKind) {
  const Json lock = to_json(held_lock);
  EXPECT_EQ(lock["kind"], "lock");
  EXPECT_EQ(lock["holders"],
            (Json{{{"holder", "a:1:x"}, {"mode", "exclusive"}, {"token", 7}, {"remaining_ms", 1500}}}));
  EXPECT_FALSE(lock.contains("permits"));
  EXPECT_FALSE(lock.contains("value"));
  const Json read_write = to_json(readers);
  EXPECT_EQ(read_write["kind"], "read-write");
  EXPECT_EQ(read_write["holder"], "b:2:y");
  ASSERT_EQ(read_write["holders"].size(), 2U);
  EXPECT_EQ(read_write["holders"][0],
            (Json{{"holder", "a:1:x"}, {"mode", "shared"}, {"token", 8}, {"remaining_ms", nullptr}}));
  EXPECT_EQ(to_json(permits)["permits"], 3);
  EXPECT_EQ(to_json(leader)["value"], "10.0.0.7:80");
  EXPECT_EQ(to_json(LockInfo{.name = "free", .kind = LockKind::election})["value"], nullptr);
  EXPECT_EQ(to_json(LockInfo{.name = "free"})["holders"], Json::array());
}

}  // namespace
}  // namespace dlock::cli
