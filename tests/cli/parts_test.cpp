// Parts of the command that need no process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <dlock/capabilities.hpp>
#include <dlock/error.hpp>

#include "cli/application.hpp"
#include "cli/arguments.hpp"
#include "cli/exit_code.hpp"
#include "cli/json.hpp"
#include "cli/lease_watch.hpp"
#include "cli/location.hpp"
#include "cli/lock_report.hpp"
#include "cli/metrics.hpp"
#include "cli/output.hpp"
#include "cli/secret_arguments.hpp"
#include "cli/session.hpp"
#include "cli/text.hpp"

namespace dlock::cli {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += " " + word;
  return text;
}

std::string milliseconds(Duration time) {
  return time == forever ? "forever" : std::to_string(time.value() / 1ms);
}

// Names, the options that differ from their defaults, and the command.
std::string parsed(const std::string& line) {
  std::istringstream text(line);
  const Words words(std::istream_iterator<std::string>(text), {});
  const auto arguments = std::get<Arguments>(parse_arguments(words));
  std::string found = std::string(kind_word(arguments.kind)) + joined(arguments.names);
  const auto add = [&](bool given, const std::string& option) {
    if (given) found += ", " + option;
  };
  add(arguments.mode == Mode::shared, "shared");
  add(arguments.permits != 0, std::to_string(arguments.permits));
  add(arguments.url.has_value(), arguments.url.value_or(""));
  add(arguments.wait != forever, "wait " + milliseconds(arguments.wait));
  add(arguments.connect_wait != Duration(30s), "connect " + milliseconds(arguments.connect_wait));
  add(arguments.lease.has_value(), "lease " + milliseconds(arguments.lease.value_or(forever)));
  add(arguments.hold_at_least != Duration(), "hold " + milliseconds(arguments.hold_at_least));
  add(arguments.kill_after != Duration(5s), "kill " + milliseconds(arguments.kill_after));
  add(arguments.quiet, "quiet");
  add(!arguments.command.empty(), "command" + joined(arguments.command));
  return found;
}

TEST(Arguments, EachLine_GivesNamesOptionsAndCommand) {
  const std::vector<std::pair<const char*, const char*>> rows{
      {"run job -- cmd -x", "lock job, command cmd -x"},
      {"run --url=memory:// --wait 1.5s --lease=2m --hold-at-least 5m --kill-after 0 -q job -- cmd",
       "lock job, memory://, wait 1500, connect forever, lease 120000, hold 300000, kill 0, quiet, command cmd"},
      {"run --try job -- cmd", "lock job, wait 0, connect forever, command cmd"},
      // A wait with a limit, or a given one, needs no limit for the connection.
      {"run --wait 1s job -- cmd", "lock job, wait 1000, connect forever, command cmd"},
      {"hold --wait forever job", "lock job, connect forever"},
      {"hold --connect-wait 250ms job", "lock job, connect 250"},
      {"hold --connect-wait=forever job", "lock job, connect forever"},
      {"run --wait 1h --connect-wait 5s job -- cmd", "lock job, wait 3600000, connect 5000, command cmd"},
      {"run --shared job -- cmd", "read-write job, shared, command cmd"},
      {"hold job --exclusive", "read-write job"},
      {"hold --permits 2147483647 job", "semaphore job, 2147483647"},
      {"status job", "lock job"},
      {"status --kind lock job", "lock job"},
      {"list --kind=read-write", "read-write"},
      {"break --kind semaphore job", "semaphore job"},
      {"forget --kind election job", "election job"},
      {"run b --try a -- cmd c", "lock b a, wait 0, connect forever, command cmd c"},
      {"hold -- b a -x", "lock b a -x"},
      {"run job -- git checkout -- file", "lock job, command git checkout -- file"},
      {"run -q -- --try -- cmd", "lock --try, quiet, command cmd"},
  };
  for (const auto& [line, expected] : rows) EXPECT_EQ(parsed(line), expected) << line;
}

TEST(Arguments, Errors_ShowOnlyTheSchemeOfUrls) {
  EXPECT_EQ(without_urls("what is redis://u:p w@h, please", {"redis://u:p w@h"}), "what is redis://***, please");
  EXPECT_EQ(without_urls("what is redis://:x@h", {"--url=redis://:x@h"}), "what is redis://***");
  EXPECT_EQ(without_urls("twice a://s, a://s", {"a://s"}), "twice a://***, a://***");
  EXPECT_EQ(without_urls("shown a://*** again", {"a://***"}), "shown a://*** again");
  EXPECT_EQ(without_urls("://pw", {"://pw"}), "://***");
  EXPECT_EQ(without_urls("nothing to hide", {"job", "--"}), "nothing to hide");
}

TEST(HiddenWords, Urls_KeepNoByteOfASecret) {
  const std::vector<std::pair<Words, Words>> rows{
      {{"run", "--url", "redis://me:hunter2@db1/0", "job", "--", "cmd"},
       {"run", "--url", "redis://me:***@db1/0", "job", "--", "cmd"}},
      {{"--url=zookeeper://h1,h2?auth=digest:me:hunter2"}, {"--url=zookeeper://h1,h2?auth=***"}},
      {{"--urlredis://me:hunter2@db1?lease=5s"}, {"--urlredis://***"}},
      {{"redis://me:hunter2@[::1/"}, {"redis://***"}},  // not a URL
      {{"redis://:p@h"}, {"redis://:***"}},             // shorter than its mark
      {{"x://p@["}, {"x://***"}},
      {{"run", "--url", "redis://me@db1/0?lease=5s", "--wait=1s", "a b", ""},
       {"run", "--url", "redis://me@db1/0?lease=5s", "--wait=1s", "a b", ""}},
      // The words behind "complete --" belong to dlock, those behind another "--" to the command.
      {{"complete", "--", "run", "--url", "redis://me:hunter2@db1/0", "j"},
       {"complete", "--", "run", "--url", "redis://me:***@db1/0", "j"}},
      {{"run", "job", "--", "curl", "https://me:hunter2@web"}, {"run", "job", "--", "curl", "https://me:hunter2@web"}},
  };
  for (auto [words, expected] : rows) {
    words.insert(words.begin(), "dlock");
    expected.insert(expected.begin(), "dlock");
    std::vector<char*> pointers;
    for (std::size_t i = 0; i < words.size(); ++i) {
      expected[i].resize(words[i].size(), '\0');
      pointers.push_back(words[i].data());
    }
    hide_secrets(static_cast<int>(pointers.size()), pointers.data());
    EXPECT_EQ(words, expected);
  }
}

TEST(ExitCode, EachErrorOfTheLibrary_HasOne) {
  const std::vector<std::pair<std::error_code, ExitCode>> rows{
      {make_error_code(errc::timed_out), ExitCode::timed_out},
      {make_error_code(errc::unavailable), ExitCode::unavailable},
      {make_error_code(errc::ambiguous), ExitCode::unavailable},
      {make_error_code(errc::access_denied), ExitCode::access_denied},
      {make_error_code(errc::invalid_argument), ExitCode::usage},
      {make_error_code(errc::unsupported), ExitCode::unsupported},
      {make_error_code(errc::lost), ExitCode::lost},
      {make_error_code(errc::protocol), ExitCode::internal},
      {std::make_error_code(std::errc::too_many_files_open), ExitCode::system},
  };
  for (const auto& [error, status] : rows) EXPECT_EQ(exit_code(error), status) << error.message();
}

TEST(Text, EachConversion_GivesPlainText) {
  const std::vector<std::pair<std::string, std::string>> rows{
      {label_for("report.sh"), "report.sh"},
      {label_for("/usr/bin/rsync"), "rsync"},
      {label_for("a b\xC3\xA4\n"), "a_b___"},
      {label_for(""), "dlock"},
      {label_for("dir/"), "dlock"},
      {label_for(std::string(100, 'x')), std::string(64, 'x')},
      {file_url("/run/user/1000/dlock"), "file:///run/user/1000/dlock"},
      {file_url("/a b%?#\xC3\xA4"), "file:///a%20b%25%3F%23%C3%A4"},
      {quoted({"a"}), R"("a")"},
      {quoted({"a", "b c"}), R"("a" and "b c")"},
      {quoted({"a", "b", "c"}), R"("a", "b" and "c")"},
      {for_people(250ms), "250 ms"},
      {for_people(28'140ms), "28.1 s"},
      {for_people(200s), "3 min 20 s"},
      {for_people(26h + 5min), "26 h 5 min"},
  };
  for (const auto& [text, expected] : rows) EXPECT_EQ(text, expected);
}

TEST(Explanation, EachGuarantee_HasOne) {
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

// A service may send control characters. Transcripts have the cells of tables.
TEST(Output, ControlCharacters_AreEscaped) {
  flush_messages();  // of earlier tests
  testing::internal::CaptureStderr();
  say("the service says: \033[2J\ndlock: all is well");
  flush_messages();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "dlock: the service says: \\x1b[2J\\x0adlock: all is well\n");
  testing::internal::CaptureStdout();
  print_lines("one\ntwo\033[2J\n\nlast");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "one\ntwo\\x1b[2J\n\nlast");
}

TEST(LockReport, UnknownValues_AreMarked) {
  const LockInfo free{.name = "rates", .kind = LockKind::election};
  const LockInfo held{.name = "job", .held = true, .kind = LockKind::election};
  EXPECT_EQ(list_text({to_json(free), to_json(held)}),
            "NAME   STATE  TOKEN  HOLDER   VALUE\n"
            "rates  free   -      -        -\n"
            "job    held   -      unknown  -\n");
  EXPECT_EQ(status_text(to_json(held)), "name    job\nkind    election\nstate   held\nvalue   -\nholder  unknown\n");
  EXPECT_EQ(to_json(free)["value"], nullptr);
  EXPECT_EQ(status_text(to_json({.name = "prices",
                                 .held = true,
                                 .kind = LockKind::read_write,
                                 .holders = {{.mode = Mode::shared}, {.holder = "b", .remaining = 20s}}})),
            "name     prices\nkind     read-write\nstate    shared\n"
            "held by  unknown     token -\n         b           token -, 20.0 s\n");
}

// Transcripts have the files, and what is kept of an earlier one.
TEST(Metrics, EachEndOfARun_HasItsGauges) {
  using Ended = Account::Result;
  struct Row {
    Account account;
    std::string expected;  // status, result, hold, success
  };
  const auto ran = [](int status) {
    return Account{.result = Ended::ran, .status = status, .command_status = status, .held = 1500ms};
  };
  const std::vector<Row> rows{
      {ran(0), "0 ran 1.5 1763719872.5"},
      {ran(3), "3 ran 1.5 none"},
      {{.result = Ended::conflict, .status = 75}, "75 conflict none none"},
      {{.result = Ended::conflict, .status = 0}, "0 conflict none none"},  // --conflict-exit-code 0
      {{.result = Ended::interrupted, .status = 143}, "143 interrupted none none"},
      {{.result = Ended::failed, .status = 69}, "69 failed none none"},
      {{.result = Ended::lost, .status = 79, .command_status = 143, .held = 1s}, "79 lost 1 none"},
      {{.result = Ended::lost, .status = 0, .command_status = 0, .held = 1s}, "0 lost 1 1763719872.5"},
      {{.result = Ended::ran, .status = 0, .held = 1s}, "0 ran 1 1763719872.5"},  // dlock hold
  };
  const std::chrono::system_clock::time_point noon{1763719872500ms};
  const auto text_of = [&](const Account& account, const std::string& earlier) {
    return metrics_text(account, {"job"}, LockKind::lock, noon, earlier);
  };
  for (const auto& [account, expected] : rows) {
    const std::string text = text_of(account, text_of(ran(4), ""));
    // Up to a blank, behind the metric and its labels.
    const auto value = [&](const std::string& metric, const std::string& behind = "} ") {
      const std::string front = "\ndlock_last_" + metric + "{name=\"job\",kind=\"lock\"" + behind;
      const auto at = text.find(front);
      return at == std::string::npos
                 ? "none"
                 : text.substr(at + front.size(), text.find_first_of("\n\"", at + front.size()) - at - front.size());
    };
    EXPECT_EQ(value("exit_status") + " " + value("result", ",result=\"") + " " + value("hold_seconds") + " " +
                  value("success_timestamp_seconds"),
              expected);
  }
}

// --- What is done as a lease runs out ---

using Action = LeaseWatch::Action;
using Time = std::chrono::nanoseconds;  // since the lease was granted

constexpr Time never = Time::max();
constexpr Action none = Action::none;
constexpr Action terminate = Action::terminate;
constexpr Action kill = Action::kill;

// A look at the lease, and what the watch says.
struct Look {
  Time at;
  Time valid_until;
  bool lost;
  Action action;
  std::optional<Time> wake = std::nullopt;
  std::optional<Time> deadline = std::nullopt;
};

struct LeaseRow {
  const char* name;
  Time grace;
  Time lease;
  std::vector<Look> looks;
};
void PrintTo(const LeaseRow& row, std::ostream* out) {
  *out << row.name;
}

TimePoint point(Time time) {
  return time == never ? TimePoint::max() : TimePoint(24h) + time;
}

class LeaseWatchTest : public testing::TestWithParam<LeaseRow> {};

TEST_P(LeaseWatchTest, Step_ReturnsActionAndTimes) {
  const auto& [name, grace, lease, looks] = GetParam();
  LeaseWatch watch(grace, point(0s), point(lease));
  for (const Look& look : looks) {
    SCOPED_TRACE(look.at.count());
    const auto step = watch.step(point(look.at), point(look.valid_until), look.lost);
    EXPECT_EQ(step.action, look.action);
    if (look.wake) {
      EXPECT_EQ(step.wake, point(*look.wake));
    }
    if (look.deadline) {
      EXPECT_EQ(step.deadline, point(*look.deadline));
    }
  }
}

const std::vector<LeaseRow> lease_rows{
    {"EndlessLease_DoesNothing", 5s, never, {{1000h, never, false, none, never, never}}},
    {"LongLease_WakesHalfWayAndWhenTheNoticeBegins",
     5s,
     30s,
     {{0s, 30s, false, none, 15s, 30s}, {16s, 30s, false, none, 23s, 30s}, {23s, 30s, false, none, 25s, 30s}}},
    {"NoNotice_WakesLongBeforeTheEnd", 0s, 30s, {{0s, 30s, false, none, 15s}, {29s, 30s, false, none, 29500ms}}},
    {"EndIsNear_WakesAtTheEnd", 0s, 30s, {{30s - 1us, 30s, false, none, 30s}}},
    {"Renewal_MovesTheNextStep", 5s, 30s, {{0s, 30s, false, none}, {24s, 50s, false, none, 37s, 50s}}},
    {"EndingLease_Terminates", 5s, 30s, {{25s, 30s, false, terminate, 30s, 30s}}},
    {"EndOfTheLease_Kills",
     5s,
     30s,
     {{26s, 30s, false, terminate}, {30s - 1ns, 30s, false, none}, {30s, 30s, true, kill}}},
    {"AfterTheKill_DoesNothing", 5s, 30s, {{31s, 30s, true, kill}, {32s, 30s, true, none, never, 30s}}},
    {"ShortLease_LimitsTheNoticeToAThird", 10s, 6s, {{4s - 1ns, 6s, false, none}, {4s, 6s, false, terminate}}},
    {"LateRenewal_DoesNotRevokeTheTermination",
     5s,
     30s,
     {{25s, 30s, false, terminate}, {26s, 56s, false, none, 30s}, {30s, 56s, false, kill}}},
    {"LostLock_TerminatesAndKillsAfterTheGrace",
     5s,
     never,
     {{7s, never, true, terminate, 12s, 12s}, {12s - 1ns, never, true, none}, {12s, never, true, kill}}},
    {"LostLock_LimitsTheGraceToTheLease", 5s, 30s, {{20s, 22s, true, terminate, 22s}}},
    {"ExpiredLease_KillsAtOnce", 5s, 30s, {{300s, 30s, false, kill}}},
    {"NoGrace_KillsAtOnce", 0s, never, {{0s, never, true, kill}}},
    {"EndlessGrace_HasNoDeadline", forever.value(), never, {{0s, never, true, terminate, never}}},
    {"EndlessGrace_EndsWithTheLease", forever.value(), 30s, {{0s, 30s, true, terminate, 30s}}},
    {"NegativeGrace_CountsAsNone", -1s, 30s, {{30s - 2ms, 30s, false, none, 30s - 1ms}, {30s, 30s, false, kill}}},
};

INSTANTIATE_TEST_SUITE_P(Of, LeaseWatchTest, testing::ValuesIn(lease_rows),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

}  // namespace
}  // namespace dlock::cli
