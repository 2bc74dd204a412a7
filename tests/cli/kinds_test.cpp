// Several locks as one, and the kinds of locks.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <sstream>

#include "support/cli_test.hpp"

namespace dlock::cli::test {
namespace {

using Json = nlohmann::json;

class Kinds : public CliTest {
 protected:
  // What a command under these locks has in that variable.
  [[nodiscard]] std::string variable(const std::string& name, std::vector<std::string> words) const {
    for (const std::string& word : {std::string("--"), probe_path(), std::string("environment"), name}) {
      words.push_back(word);
    }
    const Finished result = run(dlock("run", words));
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  }
  // The status of a try that runs nothing.
  [[nodiscard]] Finished tried(std::vector<std::string> words) const {
    words.insert(words.begin(), "--try");
    for (const char* word : {"--", "true"}) words.emplace_back(word);
    return run(dlock("run", words));
  }
  [[nodiscard]] Process holder_of(std::vector<std::string> words) const {
    Process hold(dlock("hold", std::move(words)));
    (void)hold.line();
    return hold;
  }
};

TEST_F(Kinds, SeveralLocksAreTakenAsOne) {
  const Process holder = holder_of({"b"});
  const Finished busy = tried({"a", "b", "c"});
  EXPECT_EQ(busy.status, 75);
  EXPECT_EQ(busy.err, "dlock: another client holds one of \"a\", \"b\" and \"c\"\n");
  EXPECT_EQ(tried({"a", "c"}).status, 0) << "what it had got was not given back";
}

TEST_F(Kinds, SeveralLocksAreWaitedFor) {
  Process holder = holder_of({"b"});
  const Finished late = run(dlock("run", {"--wait", "20ms", "b", "a", "--", "echo", "ran"}));
  EXPECT_EQ(late.status, 76);
  EXPECT_EQ(late.out, "");
  EXPECT_EQ(late.err, "dlock: timed out waiting for \"b\" and \"a\": another client holds one of them\n");
  EXPECT_EQ(tried({"a"}).status, 0);
  Process waiter(dlock("run", {"b", "a", "--", "echo", "ran"}));
  holder.signal(SIGTERM);
  EXPECT_EQ(waiter.finish().out, "ran\n");
}

TEST_F(Kinds, SeveralLocksKeepOthersOutOfEachAndAreFreeTogether) {
  Process holder(dlock("run", {"b", "a", "--", probe_path(), "wait"}));
  (void)holder.line();
  EXPECT_EQ(tried({"a"}).status, 75);
  EXPECT_EQ(tried({"b"}).status, 75);
  EXPECT_EQ(tried({"c"}).status, 0);
  EXPECT_EQ(holder.finish().status, 0);
  EXPECT_EQ(tried({"a", "b"}).status, 0);
}

TEST_F(Kinds, ACommandUnderSeveralLocksIsToldAllOfThem) {
  EXPECT_EQ(variable("DLOCK_NAMES", {"b", "a x"}), "b\na x\n");
  EXPECT_EQ(variable("DLOCK_KIND", {"b", "a x"}), "lock\n");
  EXPECT_EQ(variable("DLOCK_TOKEN", {"b", "a x"}), "(unset)\n");
  EXPECT_EQ(variable("DLOCK_NAME", {"b", "a x"}), "(unset)\n");
  std::istringstream tokens(variable("DLOCK_TOKENS", {"b", "a x"}));
  const auto last = [this](const std::string& name) {
    return Json::parse(run(dlock("status", {"--json", name})).out)["token"].get<std::uint64_t>();
  };
  std::uint64_t of_b = 0;
  std::uint64_t of_a = 0;
  tokens >> of_b >> of_a;
  EXPECT_EQ(of_b, last("b"));
  EXPECT_EQ(of_a, last("a x"));
}

TEST_F(Kinds, ACommandUnderOneLockIsToldInBothWays) {
  const Finished result =
      run(dlock("run", {"job", "--", "sh", "-c",
                        R"(test "$DLOCK_NAME,$DLOCK_TOKEN" = "$DLOCK_NAMES,$DLOCK_TOKENS" && echo "$DLOCK_NAMES")"}));
  EXPECT_EQ(result.out, "job\n");
}

TEST_F(Kinds, OfTheLockAroundItACommandUnderSeveralIsToldNothing) {
  std::vector<std::string> words{"outer", "--"};
  for (const std::string& word : dlock("run", {"a", "b", "--", probe_path(), "environment", "DLOCK_NAME"})) {
    words.push_back(word);
  }
  EXPECT_EQ(run(dlock("run", words)).out, "(unset)\n");
}

TEST_F(Kinds, TheLossOfOneOfSeveralLocksEndsTheCommand) {
  Process holder(dlock("run", {"a", "b", "--", probe_path(), "listen"}));
  (void)holder.line();
  ASSERT_TRUE(std::filesystem::remove(scratch().path() + "/b.lock"));
  const Finished result = holder.finish();
  EXPECT_EQ(result.out, std::to_string(SIGTERM) + "\n");
  EXPECT_EQ(result.status, 79);
  EXPECT_THAT(result.err, testing::StartsWith("dlock: lost \"b\""));
  EXPECT_EQ(tried({"a", "b"}).status, 0);
}

TEST_F(Kinds, HoldPrintsTheTokenOfEachLock) {
  Process hold(dlock("hold", {"b", "a"}));
  const std::string first = hold.line();
  const std::string second = hold.line();
  EXPECT_THAT(run(dlock("status", {"b"})).out, testing::HasSubstr("token   " + first + "\n"));
  EXPECT_THAT(run(dlock("status", {"a"})).out, testing::HasSubstr("token   " + second + "\n"));
  hold.signal(SIGINT);
  EXPECT_EQ(hold.finish().status, 0);
  EXPECT_EQ(tried({"a", "b"}).status, 0);
}

TEST_F(Kinds, HoldPrintsJsonOfEachLock) {
  Process hold(dlock("hold", {"--json", "b", "a"}));
  const Json several = Json::parse(hold.line());
  EXPECT_EQ(several["names"], (Json{"b", "a"}));
  EXPECT_EQ(several["tokens"].size(), 2U);
  EXPECT_EQ(several["kind"], "lock");
  EXPECT_FALSE(several.contains("name"));
  EXPECT_FALSE(several.contains("token"));
}

TEST_F(Kinds, HoldOfSeveralLocksExitsWith79WhenOneIsLost) {
  Process hold(dlock("hold", {"a", "b"}));
  (void)hold.line();
  (void)hold.line();
  ASSERT_TRUE(std::filesystem::remove(scratch().path() + "/a.lock"));
  const Finished result = hold.finish();
  EXPECT_EQ(result.status, 79);
  EXPECT_THAT(result.err, testing::StartsWith("dlock: lost \"a\""));
}

TEST_F(Kinds, ManyShareAReadWriteLockOrOneHasItAlone) {
  Process first = holder_of({"--shared", "job"});
  const Process second = holder_of({"--shared", "job"});
  const Finished writer = tried({"--exclusive", "job"});
  EXPECT_EQ(writer.status, 75);
  EXPECT_EQ(writer.err, "dlock: another client holds \"job\"\n");
  const Json status = Json::parse(run(dlock("status", {"--json", "--kind", "read-write", "job"})).out);
  ASSERT_EQ(status["holders"].size(), 2U);
  EXPECT_EQ(status["holders"][0]["mode"], "shared");
  EXPECT_THAT(status["holders"].dump(), testing::HasSubstr(":" + std::to_string(first.pid()) + ":"));
  EXPECT_THAT(status["holders"].dump(), testing::HasSubstr(":" + std::to_string(second.pid()) + ":"));
  EXPECT_THAT(run(dlock("list", {"--kind", "read-write"})).out, testing::HasSubstr("job   shared"));
}

TEST_F(Kinds, ReadersAreKeptOutByAWriter) {
  Process writer = holder_of({"--exclusive", "job"});
  const Finished reader = tried({"--shared", "job"});
  EXPECT_EQ(reader.status, 75);
  EXPECT_EQ(reader.err, "dlock: another client holds \"job\" exclusively, or waits to\n");
  const Finished late = run(dlock("run", {"--shared", "--wait", "20ms", "job", "--", "echo", "ran"}));
  EXPECT_EQ(late.status, 76);
  EXPECT_EQ(late.err, "dlock: timed out waiting for \"job\": another client holds it exclusively, or waits to\n");
  Process waiter(dlock("run", {"--shared", "job", "--", "echo", "ran"}));
  writer.signal(SIGKILL);
  EXPECT_EQ(waiter.finish().out, "ran\n");
}

TEST_F(Kinds, ASemaphoreHasSoManyPermits) {
  Process first = holder_of({"--permits", "2", "job"});
  Process second = holder_of({"--permits", "2", "job"});
  const Finished third = tried({"--permits", "2", "job"});
  EXPECT_EQ(third.status, 75);
  EXPECT_EQ(third.err, "dlock: all 2 permits of \"job\" are taken, or others wait for one\n");
  EXPECT_THAT(run(dlock("status", {"--kind", "semaphore", "job"})).out,
              testing::HasSubstr("permits  2 of 2 are taken\n"));
  first.signal(SIGKILL);
  (void)first.wait();
  EXPECT_EQ(tried({"--permits", "2", "job"}).status, 0) << "a permit whose holder was killed comes back";
}

TEST_F(Kinds, AnotherNumberOfPermitsIsRefusedNamingBoth) {
  const Process holder = holder_of({"--permits", "2", "job"});
  const Finished other = run(dlock("run", {"--permits", "3", "job", "--", "echo", "ran"}));
  EXPECT_EQ(other.status, 64);
  EXPECT_EQ(other.out, "");
  EXPECT_THAT(other.err, testing::AllOf(testing::HasSubstr("2"), testing::HasSubstr("3")));
}

TEST_F(Kinds, DoNotTouchEachOther) {
  const Process lock = holder_of({"job"});
  const Process writer = holder_of({"--exclusive", "job"});
  const Process permit = holder_of({"--permits", "1", "job"});
  EXPECT_EQ(run(dlock("elect", {"--once", "--try", "job", "--", "true"})).status, 0);
}

#ifdef DLOCK_TEST_WITH_MEMORY
TEST_F(Kinds, ACommandIsToldOfWhichKindItsLockIs) {
  const auto kind = [](std::vector<std::string> options) {
    std::vector<std::string> words{dlock_path(), "run", "--quiet", "--url", "memory://"};
    words.insert(words.end(), options.begin(), options.end());
    for (const std::string& word : {std::string("job"), std::string("--"), std::string("sh"), std::string("-c"),
                                    std::string(R"(echo "$DLOCK_NAME $DLOCK_KIND ${DLOCK_TOKEN:+token}")")}) {
      words.push_back(word);
    }
    const Finished result = run(words);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(kind({}), "job lock token\n");
  EXPECT_EQ(kind({"--shared"}), "job read-write token\n");
  EXPECT_EQ(kind({"--exclusive"}), "job read-write token\n");
  EXPECT_EQ(kind({"--permits", "3"}), "job semaphore token\n");
}

TEST_F(Kinds, QuestionsAreAboutOneKind) {
  for (const std::string kind : {"lock", "read-write", "semaphore", "election"}) {
    const Finished status = run({dlock_path(), "status", "--url", "memory://", "--json", "--kind", kind, "job"});
    EXPECT_EQ(status.status, 0) << status.err;
    EXPECT_EQ(Json::parse(status.out)["kind"], kind);
    const Finished list = run({dlock_path(), "list", "--url", "memory://", "--json", "--kind", kind});
    EXPECT_EQ(list.out, "[]\n") << list.err;
    EXPECT_EQ(run({dlock_path(), "break", "--url", "memory://", "--yes", "--kind", kind, "job"}).out,
              "\"job\" was not held\n");
    EXPECT_EQ(run({dlock_path(), "forget", "--url", "memory://", "--kind", kind, "job"}).out,
              "\"job\" was not known\n");
  }
}
#endif

#ifdef DLOCK_TEST_WITH_REDIS
// Known from the URL alone: nobody is asked.
TEST_F(Kinds, WhatTheBackendLacksIsSaid) {
  const std::string nowhere = "redis://127.0.0.1:1?strategy=broadcast";
  const auto refused = [&](const std::string& verb, std::vector<std::string> words) {
    words.insert(words.begin(), {dlock_path(), verb, "--url", nowhere});
    const Finished result = run(words);
    EXPECT_EQ(result.status, 78) << verb;
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  const std::string lacks = "backend \"redis\" with strategy \"broadcast\" has no ";
  EXPECT_THAT(refused("run", {"--shared", "job", "--", "echo", "ran"}), testing::HasSubstr(lacks + "read-write locks"));
  EXPECT_THAT(refused("hold", {"--permits", "2", "job"}), testing::HasSubstr(lacks + "semaphores"));
  EXPECT_THAT(refused("list", {"--kind", "semaphore"}), testing::HasSubstr(lacks + "semaphores"));
  EXPECT_THAT(refused("status", {"--kind", "read-write", "job"}), testing::HasSubstr(lacks + "read-write locks"));
  EXPECT_THAT(refused("break", {"--yes", "--kind", "read-write", "job"}), testing::HasSubstr(lacks));
}
#endif

}  // namespace
}  // namespace dlock::cli::test
