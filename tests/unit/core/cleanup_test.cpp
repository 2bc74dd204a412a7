// Giving back, and cleaning up after owners who gave up, over a service that the test plays: every request is answered
// by hand, or never. Each row is a script of what happens, and the requests and reports that it leads to.
#include <dlock/spi/cleanup.hpp>

#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/manual_engine.hpp"

namespace dlock::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using Reason = Cleanup::Reason;

OwnerId owner_of(char letter) {
  return {1, static_cast<std::uint64_t>(letter)};
}

struct CleanupRow {
  const char* name;
  const char* script;
  const char* log;
};

void PrintTo(const CleanupRow& row, std::ostream* out) {
  *out << row.name;
}

// A word may end with an owner: "release_a". A number is milliseconds that pass, which the log has as "|". An answer is
// to the newest request, or to the numbered one: "0:yes".
class CleanupTest : public testing::TestWithParam<CleanupRow> {
 protected:
  struct Asked {
    TimePoint when;
    Cleanup::Answer answer;
  };

  CleanupTest() { start(); }
  void start(nanoseconds patience = 0s) {
    cleanup.emplace(engine, 4s, patience,
                    [this](const Cleanup::Claim& claim, Reason reason, TimePoint deadline, Cleanup::Answer answer) {
                      const auto letter = static_cast<char>(claim.owner.low());
                      const bool gives_up = reason == Reason::give_up;
                      EXPECT_EQ(claim.name, lock_of(letter));
                      EXPECT_EQ(deadline, (gives_up ? engine.now() : released_at[letter]) + 4s)
                          << "within the time that the caller was promised";
                      write(std::string(gives_up ? "remove " : "release ") + letter);
                      asked.push_back({engine.now(), std::move(answer)});
                      if (const auto f = std::exchange(when_asked, nullptr)) f();
                      if (answer_at_once) reply(asked.size() - 1, *answer_at_once);
                    });
  }
  static std::string lock_of(char letter) { return std::string("lock of ") + letter; }
  void write(const std::string& what) { log += (log.empty() ? "" : " ") + what; }
  void reply(std::size_t request, const Result<bool>& answer) {
    const auto done = std::exchange(asked.at(request).answer, nullptr);
    ASSERT_TRUE(done) << "answered before";
    done(answer);
  }
  void release(char letter, nanoseconds lease) {
    released_at[letter] = engine.now();
    const Grant grant{lock_of(letter), owner_of(letter), FencingToken(7), lease_valid_until(engine.now(), lease),
                      lease};
    cleanup->release(grant, [this, letter](const ReleaseOutcome& outcome) {
      using Status = ReleaseOutcome::Status;
      write(std::string(1, letter) + (outcome.status == Status::released        ? " released"
                                      : outcome.status == Status::not_owner     ? " not owner"
                                      : outcome.failure.code == errc::ambiguous ? " ambiguous"
                                                                                : " unavailable"));
      end_if_wanted();
    });
  }
  void abandon(char letter, bool late_requests, nanoseconds lease = 30s) {
    cleanup->abandon({LockKind::lock, lock_of(letter), owner_of(letter)}, lease, late_requests);
  }
  void finish() {
    cleanup->finish([this] {
      write("finished");
      end_if_wanted();
    });
  }
  void end_if_wanted() {
    if (then_end) cleanup.reset();
  }
  void follow(const std::string& word) {
    const char owner = word.back();
    const std::string verb = word.substr(0, word.rfind('_'));
    const std::map<std::string, std::function<void()>> verbs = {
        {"release", [&] { release(owner, 30s); }},
        {"release_brief", [&] { release(owner, 1s); }},
        {"abandon", [&] { abandon(owner, false); }},
        {"abandon_late", [&] { abandon(owner, true); }},  // a request of it may be late
        {"granted_late", [&] { cleanup->granted_late(owner_of(owner)); }},
        {"doubt", [&] { cleanup->in_doubt(owner_of(owner), 15s); }},
        {"is_in_doubt", [&] { write(cleanup->is_in_doubt(owner_of(owner)) ? "in doubt" : "no doubt"); }},
        {"retry", [&] { cleanup->retry_now(); }},
        {"always_yes", [&] { answer_at_once = true; }},
        {"always_ambiguous", [&] { answer_at_once = Result<bool>(answers.at("ambiguous")); }},
        {"finish", [&] { finish(); }},
        {"then_end", [&] { then_end = true; }},  // in the next report
        {"end", [&] { cleanup.reset(); }}};
    const auto colon = word.find(':');
    const auto answer = answers.find(colon == std::string::npos ? word : word.substr(colon + 1));
    const auto known = verbs.find(verbs.contains(word) ? word : verb);
    if (answer != answers.end()) {
      reply(colon == std::string::npos ? asked.size() - 1 : std::stoul(word), answer->second);
    } else if (known != verbs.end()) {
      known->second();
    } else {
      write("|");
      engine.advance(std::chrono::milliseconds(std::stol(word)));
    }
  }

  const std::map<std::string, Result<bool>> answers = {
      {"yes", true},
      {"no", false},
      {"unavailable", Failure{errc::unavailable, "not asked"}},
      {"ambiguous", Failure{errc::ambiguous, "no answer"}},
      {"denied", Failure{errc::access_denied, "denied"}},
  };
  test::ManualEngine engine;
  std::map<char, TimePoint> released_at;
  std::vector<Asked> asked;
  std::optional<Result<bool>> answer_at_once;
  std::function<void()> when_asked;  // once
  bool then_end = false;
  std::string log;
  std::optional<Cleanup> cleanup;
};

TEST_P(CleanupTest, Script_LeadsToItsLog) {
  std::istringstream script(GetParam().script);
  for (std::string word; script >> word;) follow(word);
  EXPECT_EQ(log, GetParam().log);
  if (!cleanup) {
    EXPECT_EQ(engine.pending_timers(), 0U);
  }
}

constexpr CleanupRow cleanup_rows[] = {
    {"released", "release_a 100 yes 3600000", "release a | a released |"},
    {"not ours", "release_a 100 no 3600000", "release a | a not owner |"},
    {"unanswered, then released", "release_a 100 ambiguous 100 yes 3600000", "release a | release a | a released |"},
    // If a lock is gone before its lease ended, an unanswered attempt released it: no other owner can have had it.
    // Shows: hole lost-release-answer
    {"unanswered_then_gone", "release_a 100 ambiguous 100 no 3600000", "release a | release a | a released |"},
    {"not sent: it is repeated until it is confirmed", "release_a 100 unavailable unavailable 20 yes 3600000",
     "release a | remove a a unavailable | remove a |"},
    {"unanswered each time",
     "release_a ambiguous ambiguous ambiguous ambiguous ambiguous ambiguous ambiguous ambiguous "
     "unavailable 20 yes 1000 yes 3600000",
     "release a release a release a release a release a release a release a release a "
     "remove a a ambiguous | remove a | remove a |"},
    {"gone just before the end of the lease", "release_brief_a 987 ambiguous no", "release a | release a a released"},
    // Shows: hole lost-release-answer
    {"gone_at_the_end", "release_brief_a 988 ambiguous no 3600000", "release a | release a a ambiguous |"},
    {"unanswered at the deadline", "release_a 4000 ambiguous", "release a | remove a a ambiguous"},
    {"two releases", "release_a release_b 0:ambiguous 1:no 2:no",
     "release a release b release a b not owner a released"},
    {"an answer inside the call", "always_yes release_a", "release a a released"},
    {"failures inside the calls", "always_ambiguous release_a always_yes finish 5000",
     "release a release a release a release a release a release a release a release a "
     "remove a a ambiguous | remove a finished remove a"},

    {"abandoned", "abandon_a 0 abandon_a no 3600000", "remove a | |"},
    {"removed twice if a request may be late", "abandon_late_a abandon_late_a no 999 1 yes 3600000",
     "remove a | | remove a |"},
    {"a removal without an answer may be late, too", "abandon_a ambiguous 20 yes 1000",
     "remove a | remove a | remove a"},
    {"pauses end, and begin anew, when the service is reachable again",  // not those of b, c
     "abandon_a unavailable 1000 unavailable 1000 unavailable 1000 unavailable 1000 unavailable 1000 unavailable "
     "abandon_late_b no abandon_c 0 retry 0 retry unavailable 20 unavailable always_yes retry 900",
     "remove a | remove a | remove a | remove a | remove a | remove a "
     "remove b remove c | remove a | | remove a remove a |"},
    {"a late grant is taken back at once", "abandon_late_a no granted_late_a yes granted_late_b 3600000",
     "remove a remove a |"},
    {"answers about a removed owner are ignored", "abandon_late_a no granted_late_a granted_late_a 1:yes 2:no finish",
     "remove a remove a remove a finished"},
    {"an owner in doubt is removed after its release",
     "is_in_doubt_a doubt_a is_in_doubt_a 14000 doubt_b release_a yes no 1000 is_in_doubt_a",
     "no doubt in doubt | release a remove a a released | remove a no doubt"},
    {"for some time", "doubt_a 15000 doubt_b release_a yes", "| release a a released"},

    {"nothing is to be confirmed", "finish", "finished"},
    {"the last confirmation, not that of late requests", "abandon_a abandon_late_b finish 1:no 0:unavailable 20 yes",
     "remove a remove b | remove a finished"},
    {"destroyed when it released", "then_end release_a yes 3600000", "release a a released |"},
    {"destroyed when it failed", "then_end release_a unavailable 3600000", "release a remove a a unavailable |"},
    {"destroyed when it finished", "then_end abandon_late_a finish yes 3600000", "remove a finished |"},
    {"destroyed in between", "abandon_late_a unavailable end 3600000", "remove a |"},
};

INSTANTIATE_TEST_SUITE_P(Rows, CleanupTest, testing::ValuesIn(cleanup_rows));

TEST_F(CleanupTest, Retries_BackOffUntilNothingCanBeLeft) {
  for (const nanoseconds patience : {0s, 600s}) {
    for (const char* failure : {"unavailable", "denied"}) {
      asked.clear();
      start(patience);
      answer_at_once = answers.at(failure);
      const TimePoint begin = engine.now();
      abandon('a', false);
      finish();
      engine.advance(30s + patience - 1ns);
      EXPECT_EQ(log.find("finished"), std::string::npos);
      engine.advance(1h);
      EXPECT_TRUE(log.ends_with("finished"));
      EXPECT_GT(asked.size(), 30U);
      EXPECT_LT(asked.size(), patience == 0s ? 80U : 900U);
      EXPECT_EQ(asked.back().when, begin + 30s + patience);
      EXPECT_EQ(engine.pending_timers(), 0U);
      log.clear();
    }
  }
}

TEST_F(CleanupTest, RetryNowInsideRetryNow_RepeatsNone) {
  for (const bool answered : {false, true}) {
    start();
    for (const char owner : {'a', 'b'}) {
      abandon(owner, false);
      follow("unavailable");
    }
    asked.clear();
    when_asked = [&] {
      if (answered) answer_at_once = false;
      cleanup->retry_now();
      answer_at_once.reset();
    };
    cleanup->retry_now();
    EXPECT_EQ(asked.size(), 2U) << answered;
  }
}

TEST_F(CleanupTest, LastConfirmationWhileItRetries_MayDestroyIt) {
  for (const char* word : {"then_end", "abandon_late_a", "unavailable", "abandon_late_b", "unavailable", "finish",
                           "always_yes", "retry"}) {
    follow(word);
  }
  EXPECT_FALSE(cleanup);
  EXPECT_EQ(asked.size(), 4U);
  engine.advance(1h);
  EXPECT_EQ(asked.size(), 4U);
  EXPECT_EQ(engine.pending_timers(), 0U);
}

}  // namespace
}  // namespace dlock::detail
