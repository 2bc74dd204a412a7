// Parts of the command that need no process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include <dlock/capabilities.hpp>
#include <dlock/error.hpp>

#include "cli/application.hpp"
#include "cli/arguments.hpp"
#include "cli/exit_code.hpp"
#include "cli/location.hpp"
#include "cli/session.hpp"
#include "cli/text.hpp"

namespace dlock::cli {
namespace {

using namespace std::chrono_literals;

Arguments parsed(const std::vector<std::string>& words) {
  return std::get<Arguments>(parse_arguments(words));
}

TEST(Arguments, OfRunHaveDefaults) {
  const Arguments arguments = parsed({"run", "job", "--", "cmd", "-x"});
  EXPECT_EQ(arguments.verb, Verb::run);
  EXPECT_EQ(arguments.name(), "job");
  EXPECT_EQ(arguments.command, (std::vector<std::string>{"cmd", "-x"}));
  EXPECT_EQ(arguments.url, std::nullopt);
  EXPECT_EQ(arguments.wait, forever);
  EXPECT_EQ(arguments.connect_wait, Duration(30s));
  EXPECT_EQ(arguments.lease, std::nullopt);
  EXPECT_EQ(arguments.hold_at_least, Duration());
  EXPECT_EQ(arguments.kill_after, Duration(5s));
  EXPECT_FALSE(arguments.quiet);
}

TEST(Arguments, OfRunAreRead) {
  const Arguments arguments = parsed({"run", "--url=memory://", "--wait", "1.5s", "--lease=2m", "--hold-at-least", "5m",
                                      "--kill-after", "0", "-q", "job", "--", "cmd"});
  EXPECT_EQ(arguments.url, "memory://");
  EXPECT_EQ(arguments.wait, Duration(1500ms));
  EXPECT_EQ(arguments.lease, Duration(2min));
  EXPECT_EQ(arguments.hold_at_least, Duration(5min));
  EXPECT_EQ(arguments.kill_after, Duration());
  EXPECT_TRUE(arguments.quiet);
}

TEST(Arguments, AWaitThatEndsOrIsGivenNeedsNoLimitForReachingTheService) {
  EXPECT_EQ(parsed({"run", "--wait", "1s", "job", "--", "cmd"}).connect_wait, forever);
  EXPECT_EQ(parsed({"hold", "--wait", "forever", "job"}).connect_wait, forever);
  EXPECT_EQ(parsed({"hold", "--try", "job"}).connect_wait, forever);
  EXPECT_EQ(parsed({"hold", "job"}).connect_wait, Duration(30s));
}

TEST(Arguments, ALimitForReachingTheServiceHoldsWhereItIsGiven) {
  EXPECT_EQ(parsed({"hold", "--connect-wait", "250ms", "job"}).connect_wait, Duration(250ms));
  EXPECT_EQ(parsed({"hold", "--connect-wait=forever", "job"}).connect_wait, forever);
  EXPECT_EQ(parsed({"run", "--wait", "1h", "--connect-wait", "5s", "job", "--", "cmd"}).connect_wait, Duration(5s));
}

TEST(Arguments, NameTheKindOfLock) {
  EXPECT_EQ(parsed({"run", "job", "--", "cmd"}).kind, LockKind::lock);
  const Arguments shared = parsed({"run", "--shared", "job", "--", "cmd"});
  EXPECT_EQ(shared.kind, LockKind::read_write);
  EXPECT_EQ(shared.mode, Mode::shared);
  const Arguments exclusive = parsed({"hold", "job", "--exclusive"});
  EXPECT_EQ(exclusive.kind, LockKind::read_write);
  EXPECT_EQ(exclusive.mode, Mode::exclusive);
  const Arguments permits = parsed({"hold", "--permits", "2147483647", "job"});
  EXPECT_EQ(permits.kind, LockKind::semaphore);
  EXPECT_EQ(permits.permits, 2147483647);
  EXPECT_EQ(parsed({"status", "job"}).kind, LockKind::lock);
  EXPECT_EQ(parsed({"status", "--kind", "lock", "job"}).kind, LockKind::lock);
  EXPECT_EQ(parsed({"list", "--kind=read-write"}).kind, LockKind::read_write);
  EXPECT_EQ(parsed({"break", "--kind", "semaphore", "job"}).kind, LockKind::semaphore);
  EXPECT_EQ(parsed({"forget", "--kind", "election", "job"}).kind, LockKind::election);
}

TEST(Arguments, OfRunAndHoldMayNameSeveralLocks) {
  EXPECT_EQ(parsed({"run", "b", "--try", "a", "--", "cmd", "c"}).names, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(parsed({"hold", "--", "b", "a", "-x"}).names, (std::vector<std::string>{"b", "a", "-x"}));
}

TEST(Arguments, HelpIsACommandToo) {
  const auto answer = [](const std::vector<std::string>& words) {
    return std::get<Answer>(parse_arguments(words)).text;
  };
  EXPECT_EQ(answer({"help"}), answer({"--help"}));
  EXPECT_EQ(answer({"help", "run"}), answer({"run", "--help"}));
}

TEST(Arguments, ACommandMayContainTheSeparator) {
  EXPECT_EQ(parsed({"run", "job", "--", "git", "checkout", "--", "file"}).command,
            (std::vector<std::string>{"git", "checkout", "--", "file"}));
}

TEST(Arguments, ANameBetweenTwoSeparatorsMayLookLikeAnOption) {
  const Arguments arguments = parsed({"run", "-q", "--", "--try", "--", "cmd"});
  EXPECT_EQ(arguments.name(), "--try");
  EXPECT_EQ(arguments.wait, forever);
  EXPECT_EQ(arguments.command, (std::vector<std::string>{"cmd"}));
}

TEST(Arguments, TryIsAWaitOfZero) {
  EXPECT_EQ(parsed({"run", "--try", "job", "--", "cmd"}).wait, Duration());
}

TEST(Arguments, UrlsAreCutDownToTheirScheme) {
  EXPECT_EQ(without_urls("what is redis://u:p w@h, please", {"redis://u:p w@h"}), "what is redis://***, please");
  EXPECT_EQ(without_urls("what is redis://:x@h", {"--url=redis://:x@h"}), "what is redis://***");
  EXPECT_EQ(without_urls("twice a://s, a://s", {"a://s"}), "twice a://***, a://***");
  EXPECT_EQ(without_urls("shown a://*** again", {"a://***"}), "shown a://*** again");
  EXPECT_EQ(without_urls("://pw", {"://pw"}), "://***");
  EXPECT_EQ(without_urls("nothing to hide", {"job", "--"}), "nothing to hide");
}

TEST(ExitCode, TellsFailuresOfTheLibraryApart) {
  EXPECT_EQ(exit_code(make_error_code(errc::timed_out)), ExitCode::timed_out);
  EXPECT_EQ(exit_code(make_error_code(errc::unavailable)), ExitCode::unavailable);
  EXPECT_EQ(exit_code(make_error_code(errc::ambiguous)), ExitCode::unavailable);
  EXPECT_EQ(exit_code(make_error_code(errc::access_denied)), ExitCode::access_denied);
  EXPECT_EQ(exit_code(make_error_code(errc::invalid_argument)), ExitCode::usage);
  EXPECT_EQ(exit_code(make_error_code(errc::unsupported)), ExitCode::unsupported);
  EXPECT_EQ(exit_code(make_error_code(errc::lost)), ExitCode::lost);
  EXPECT_EQ(exit_code(make_error_code(errc::protocol)), ExitCode::internal);
  EXPECT_EQ(exit_code(std::make_error_code(std::errc::too_many_files_open)), ExitCode::system);
}

TEST(Label, IsTheFileNameOfTheProgramInPlainCharacters) {
  EXPECT_EQ(label_for("report.sh"), "report.sh");
  EXPECT_EQ(label_for("/usr/bin/rsync"), "rsync");
  EXPECT_EQ(label_for("a b\xC3\xA4\n"), "a_b___");
  EXPECT_EQ(label_for(""), "dlock");
  EXPECT_EQ(label_for("dir/"), "dlock");
  EXPECT_EQ(label_for(std::string(100, 'x')).size(), 64U);
}

TEST(FileUrl, EscapesWhatAUrlCannotContain) {
  EXPECT_EQ(file_url("/run/user/1000/dlock"), "file:///run/user/1000/dlock");
  EXPECT_EQ(file_url("/a b%?#\xC3\xA4"), "file:///a%20b%25%3F%23%C3%A4");
}

TEST(Quoted, NamesAreListedAsInASentence) {
  EXPECT_EQ(quoted({"a"}), R"("a")");
  EXPECT_EQ(quoted({"a", "b c"}), R"("a" and "b c")");
  EXPECT_EQ(quoted({"a", "b", "c"}), R"("a", "b" and "c")");
}

TEST(Explanation, IsThereForEachGuarantee) {
  for (const Scope each : {Scope::process, Scope::machine, Scope::network}) {
    EXPECT_NE(explain("scope", to_string(each)), "") << to_string(each);
  }
  for (const LeaseKind each : {LeaseKind::per_lock, LeaseKind::session, LeaseKind::process}) {
    EXPECT_NE(explain("lease", to_string(each)), "") << to_string(each);
  }
  for (const auto each : {FencingDurability::none, FencingDurability::wall_clock, FencingDurability::service}) {
    EXPECT_NE(explain("fencing", to_string(each)), "") << to_string(each);
  }
}

TEST(DurationText, IsShort) {
  EXPECT_EQ(for_people(250ms), "250 ms");
  EXPECT_EQ(for_people(28'140ms), "28.1 s");
  EXPECT_EQ(for_people(200s), "3 min 20 s");
  EXPECT_EQ(for_people(26h + 5min), "26 h 5 min");
}

}  // namespace
}  // namespace dlock::cli
