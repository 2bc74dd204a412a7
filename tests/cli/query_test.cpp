// hold, status, list, break, forget, doctor, init, backends, --version.
#include <nlohmann/json.hpp>

#include <csignal>
#include <memory>

#include <dlock/dlock.hpp>

#include "support/cli_test.hpp"

namespace dlock::cli::test {
namespace {

using Json = nlohmann::json;

class Query : public CliTest {
 protected:
  Json json_of(const std::string& verb, std::vector<std::string> words = {}) {
    words.insert(words.begin(), "--json");
    const Finished result = run(dlock(verb, words));
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1) << "one line, for line-wise readers";
    return Json::parse(result.out);
  }
};

TEST_F(Query, HoldPrintsTheTokenAndHoldsUntilASignal) {
  Process hold(dlock("hold", {"job"}));
  const auto token = std::stoull(hold.line());
  EXPECT_FALSE(lock_is_free());
  EXPECT_EQ(json_of("status", {"job"})["token"], token);
  hold.signal(SIGTERM);
  EXPECT_EQ(hold.finish().status, 0);
  EXPECT_TRUE(lock_is_free());
}

TEST_F(Query, HoldPrintsJson) {
  Process hold(dlock("hold", {"--json", "job"}));
  const Json json = Json::parse(hold.line());
  EXPECT_EQ(json["name"], "job");
  EXPECT_EQ(json["url"], url());
  EXPECT_GT(json["token"].get<std::uint64_t>(), 0U);
  EXPECT_THAT(json["holder"].get<std::string>(), testing::EndsWith(":" + std::to_string(hold.pid()) + ":dlock"));
}

TEST_F(Query, HoldTriesAndWaitsLikeRun) {
  Process hold(dlock("hold", {"job"}));
  (void)hold.line();
  EXPECT_EQ(run(dlock("hold", {"--try", "job"})).status, 75);
  EXPECT_EQ(run(dlock("hold", {"--wait", "10ms", "job"})).status, 76);
}

TEST_F(Query, HoldExitsWith79WhenTheLockIsLost) {
  Process hold(dlock("hold", {"job"}));
  (void)hold.line();
  ASSERT_EQ(run({"sh", "-c", "rm \"$0\"/*", scratch().path()}).status, 0);
  const Finished result = hold.finish();
  EXPECT_EQ(result.status, 79);
  EXPECT_THAT(result.err, testing::StartsWith("dlock: lost \"job\""));
}

TEST_F(Query, StatusTellsAboutALockNobodyEverTook) {
  EXPECT_THAT(run(dlock("status", {"job"})).out, testing::StartsWith("name   job\nstate  free\n"));
  const Json json = json_of("status", {"job"});
  EXPECT_EQ(json["name"], "job");
  EXPECT_EQ(json["held"], false);
  EXPECT_EQ(json["holder"], nullptr);
  EXPECT_EQ(json["since"], nullptr);
  EXPECT_EQ(json["token"], nullptr);
}

TEST_F(Query, StatusTellsWhoHolds) {
  Process holder(run_probe({"environment", "DLOCK_TOKEN"}, {"--hold-at-least", "1h"}));
  const std::string token = holder.line();
  const Finished status = run(dlock("status", {"job"}));
  EXPECT_THAT(status.out, testing::HasSubstr("state   held\n"));
  EXPECT_THAT(status.out, testing::HasSubstr("token   " + token + "\n"));
  EXPECT_EQ(json_of("status", {"job"})["held"], true);
}

TEST_F(Query, StatusTellsByItsStatusWhetherItIsHeld) {
  EXPECT_EQ(run(dlock("status", {"--exit-code", "job"})).status, 0);
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  EXPECT_EQ(run(dlock("status", {"--exit-code", "job"})).status, 1);
  EXPECT_EQ(run(dlock("status", {"--exit-code", "--json", "job"})).status, 1);
  EXPECT_EQ(run(dlock("status", {"job"})).status, 0);
}

TEST_F(Query, StatusTellsSinceWhenItIsHeld) {
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  EXPECT_THAT(run(dlock("status", {"job"})).out,
              testing::ContainsRegex("\nsince   20[0-9-]+ [0-9]+:[0-9]+:[0-9]+ UTC\n"));
  EXPECT_THAT(json_of("status", {"job"})["since"].get<std::string>(),
              testing::ContainsRegex("^20[0-9-]+T[0-9]+:[0-9]+:[0-9]+Z$"));
}

TEST_F(Query, StatusRemembersTheLastTokenOfAFreeLock) {
  const std::string token = run(run_probe({"environment", "DLOCK_TOKEN"})).out;
  EXPECT_THAT(run(dlock("status", {"job"})).out, testing::HasSubstr("last token  " + token));
}

TEST_F(Query, ListShowsHeldAndFreeLocksInColumns) {
  Process holder(dlock("run", {"a rather long name", "--", probe_path(), "wait"}));
  (void)holder.line();
  ASSERT_TRUE(lock_is_free());
  const Finished all = run(dlock("list"));
  EXPECT_THAT(all.out, testing::MatchesRegex("NAME                STATE  TOKEN +HOLDER\n"
                                             "a rather long name  held   [0-9]+  .+:probe\n"
                                             "job                 free   [0-9]+  .*\n"));
  const Finished held = run(dlock("list", {"--held", "--names"}));
  EXPECT_EQ(held.out, "a rather long name\n");
  const Json json = json_of("list");
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0]["name"], "a rather long name");
  EXPECT_EQ(json[0]["held"], true);
  EXPECT_EQ(json[1]["held"], false);
}

TEST_F(Query, ListOfNothingIsEmpty) {
  EXPECT_EQ(run(dlock("list")).out, "");
  EXPECT_EQ(json_of("list"), Json::array());
}

TEST_F(Query, BreakExplainsItselfUnlessToldYes) {
  const Finished result = run(dlock("break", {"job"}));
  EXPECT_EQ(result.status, 64);
  EXPECT_THAT(result.err, testing::HasSubstr("--yes"));
}

TEST_F(Query, BreakSaysWhatToDoWhereTheBackendCannot) {
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  const Finished result = run(dlock("break", {"--yes", "job"}));
  EXPECT_EQ(result.status, 78);
  EXPECT_THAT(result.err, testing::HasSubstr("end the holder instead"));
  EXPECT_THAT(result.err, testing::HasSubstr(":" + std::to_string(holder.pid()) + ":"));
  EXPECT_FALSE(lock_is_free());
}

#ifdef DLOCK_TEST_WITH_MEMORY
TEST_F(Query, BreakTellsWhetherSomebodyHeld) {
  const Finished result = run({dlock_path(), "break", "--url", "memory://", "--yes", "--json", "job"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out), (Json{{"name", "job"}, {"broken", false}}));
  EXPECT_EQ(run({dlock_path(), "break", "--url", "memory://", "--yes", "job"}).out, "\"job\" was not held\n");
}

TEST_F(Query, RunWarnsOfABackendThatKeepsNobodyElseOut) {
  const std::vector<std::string> words{dlock_path(), "run", "--url", "memory://", "job", "--", "true"};
  EXPECT_THAT(run(words).err, testing::HasSubstr("known to this process only"));
}
#endif

// Locked in 2024, by their tokens.
void use_long_ago(const std::string& url, const std::vector<std::string>& names) {
  const Client client = connect(url, {.clock = std::make_shared<ManualClock>()});
  for (const std::string& name : names) EXPECT_TRUE(client.make_lock(name).acquire().release());
}

TEST_F(Query, ForgetRemovesNames) {
  use_long_ago(url(), {"a", "b c"});
  const Finished result = run(dlock("forget", {"a", "never", "b c"}));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "\"a\" was forgotten\n\"never\" was not known\n\"b c\" was forgotten\n");
  EXPECT_EQ(run(dlock("list")).out, "");
}

TEST_F(Query, ForgetPassesOverLocksInUseAndSaysSo) {
  use_long_ago(url(), {"a"});
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  ASSERT_EQ(run(dlock("run", {"just now", "--", "true"})).status, 0);
  const Finished result = run(dlock("forget", {"job", "just now", "a"}));
  EXPECT_EQ(result.status, 75);
  EXPECT_EQ(result.out, "\"a\" was forgotten\n");
  EXPECT_THAT(result.err, testing::MatchesRegex("dlock: lock \"job\" is held by .*:" + std::to_string(holder.pid()) +
                                                ":.*\ndlock: lock \"just now\" cannot be forgotten yet: .*\n"));
  EXPECT_FALSE(lock_is_free());
}

TEST_F(Query, ForgetIdleRemovesAllNamesNotTakenForSoLong) {
  use_long_ago(url(), {"b", "a"});
  ASSERT_EQ(run(dlock("run", {"job", "--", "true"})).status, 0);
  EXPECT_EQ(run(dlock("forget", {"--idle", "36500d"})).out, "");
  const Finished result = run(dlock("forget", {"--idle", "30d"}));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "\"a\" was forgotten\n\"b\" was forgotten\n");
  EXPECT_EQ(run(dlock("list", {"--names"})).out, "job\n");
}

TEST_F(Query, ForgetPrintsJson) {
  EXPECT_EQ(json_of("forget", {"--idle", "30d"}), Json::array());
  use_long_ago(url(), {"a", "b"});
  EXPECT_EQ(json_of("forget", {"a", "never"}),
            (Json{{{"name", "a"}, {"forgotten", true}}, {{"name", "never"}, {"forgotten", false}}}));
  EXPECT_EQ(json_of("forget", {"--idle", "30d"}), (Json{{{"name", "b"}, {"forgotten", true}}}));
}

TEST_F(Query, DoctorSaysWhatTheServiceGuarantees) {
  const Finished result = run(dlock("doctor"));
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  EXPECT_THAT(result.out, testing::HasSubstr("service  " + url()));
  EXPECT_THAT(result.out, testing::HasSubstr("scope    machine: "));
  EXPECT_THAT(result.out, testing::HasSubstr("kinds    lock, read-write, semaphore, election\n"));
  const Json json = json_of("doctor");
  EXPECT_EQ(json["capabilities"]["backend"], "file");
  EXPECT_EQ(json["capabilities"]["can_break"], false);
  EXPECT_EQ(json["capabilities"]["can_forget"], true);
  EXPECT_EQ(json["capabilities"]["can_forget_idle"], true);
  EXPECT_EQ(json["capabilities"]["read_write_locks"], true);
  EXPECT_EQ(json["capabilities"]["close_on_exec"], true);
  ASSERT_FALSE(json["findings"].empty());
  for (const Json& finding : json["findings"]) {
    EXPECT_THAT(finding["severity"].get<std::string>(), testing::AnyOf("ok", "note", "warning", "error"));
    EXPECT_FALSE(finding["check"].get<std::string>().empty());
    EXPECT_FALSE(finding["message"].get<std::string>().empty());
  }
}

TEST_F(Query, InitHasNothingToDoWhereTheServiceNeedsNothing) {
  const Finished result = run(dlock("init"));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "nothing to do\n");
  EXPECT_EQ(json_of("init"), (Json{{"url", url()}, {"created", Json::array()}}));
}

TEST_F(Query, BackendsAreListedWithADescription) {
  EXPECT_THAT(run({dlock_path(), "backends"}).out, testing::HasSubstr("file://"));
  const Json json = Json::parse(run({dlock_path(), "backends", "--json"}).out);
  EXPECT_TRUE(std::any_of(json.begin(), json.end(), [](const Json& entry) { return entry["scheme"] == "file"; }));
}

TEST_F(Query, VersionIsThatOfTheProjectWithItsRevisionAndBackends) {
  EXPECT_THAT(run({dlock_path(), "--version"}).out,
              testing::MatchesRegex("dlock " DLOCK_TEST_VERSION "\nrevision: [^ \n]+\nbackends: .*file.*\n"));
}

}  // namespace
}  // namespace dlock::cli::test
