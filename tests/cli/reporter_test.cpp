// What a person hears of trouble: each kind once, until it has changed or is over.
#include "cli/reporter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>

#include "cli/output.hpp"

namespace dlock::cli {
namespace {

using State = ConnectionEvent::State;

const Failure refused{errc::unavailable, "h:1: Connection refused"};
const Failure silent{errc::unavailable, "h:1: no answer in time"};
const Failure read_only{errc::access_denied, "h:1: no permission"};

class ReporterTest : public testing::Test {
 protected:
  void break_connection(const Failure& why) { reporter.connection({State::reconnecting, why}); }
  void connect() { reporter.connection({State::connected, {}}); }
  void warn(const Failure& why) { reporter.warning({"job", why}); }
  void renew() { reporter.renewed({"job", FencingToken(1), {}}); }

  static std::string said(const std::function<void()>& events) {
    flush_messages();  // of earlier tests
    testing::internal::CaptureStderr();
    events();
    flush_messages();
    return testing::internal::GetCapturedStderr();
  }

  Reporter reporter{false};
};

TEST_F(ReporterTest, SaysOnceThatRenewalsFailInTheSameWay) {
  EXPECT_EQ(said([&] {
              for (int i = 0; i < 6; ++i) warn(silent);
            }),
            "dlock: warning: h:1: no answer in time\n");
}

TEST_F(ReporterTest, SaysThatTroubleHasChanged) {
  EXPECT_EQ(said([&] { warn(silent), warn(refused), warn(silent), warn(refused); }),
            "dlock: warning: h:1: no answer in time\ndlock: warning: h:1: Connection refused\n");
}

TEST_F(ReporterTest, SaysTroubleAgainThatWasOverMeanwhile) {
  const std::string warning = "dlock: warning: h:1: no answer in time\n";
  EXPECT_EQ(said([&] { warn(silent), renew(), warn(silent); }), warning + warning);
  EXPECT_EQ(said([&] { connect(), warn(silent), connect(), warn(silent); }), warning + warning);
  EXPECT_EQ(said([&] { reporter.acquired({"job", FencingToken(1), {}}), warn(silent); }), warning);
}

TEST_F(ReporterTest, SaysOfAnOutageItsBeginningAndItsEnd) {
  EXPECT_EQ(said([&] {
              connect();
              break_connection(silent);
              for (const Failure& why : {refused, silent, refused}) warn(why), break_connection(why);
              warn({errc::ambiguous, "h:1: Connection reset by peer"});
              connect();
            }),
            "dlock: no connection to the lock service, trying again: h:1: no answer in time\n"
            "dlock: connected to the lock service again\n");
}

TEST_F(ReporterTest, SaysAlsoDuringAnOutageThatTheServiceRefusesAndKeepsThatAsTheReason) {
  connect();
  break_connection(refused);
  EXPECT_EQ(said([&] { break_connection(read_only), break_connection(refused), warn(refused); }),
            "dlock: no connection to the lock service, trying again: h:1: no permission\n");
  EXPECT_EQ(reporter.last_failure(), "h:1: no permission");
  connect();
  break_connection(refused);
  EXPECT_EQ(reporter.last_failure(), "h:1: Connection refused");
}

TEST_F(ReporterTest, LeavesARefusalByAServiceThatWasNeverReachedToTheEndOfTheCommand) {
  EXPECT_EQ(said([&] { break_connection(read_only); }), "");
  EXPECT_EQ(reporter.last_failure(), "h:1: no permission");
}

TEST_F(ReporterTest, SaysOtherTroubleAlsoDuringAnOutage) {
  break_connection(refused);
  EXPECT_EQ(said([&] { warn(read_only), warn(read_only); }), "dlock: warning: h:1: no permission\n");
}

TEST_F(ReporterTest, SaysOnceAndForAllWhatIsWrongWithTheService) {
  const auto setting = [this] { reporter.warning({"", {errc::unavailable, "it may evict locks"}}); };
  break_connection(refused);
  EXPECT_EQ(said([&] { setting(), renew(), setting(); }), "dlock: warning: it may evict locks\n");
}

TEST_F(ReporterTest, SaysOnceWhatAWaitAndItsConnectionFailOf) {
  EXPECT_EQ(said([&] { warn(refused), break_connection(refused), warn(refused), connect(); }),
            "dlock: warning: h:1: Connection refused\ndlock: connected to the lock service again\n");
}

TEST_F(ReporterTest, SaysOfEachOutageItsFirstFailureWhenQuiet) {
  const std::string first = "dlock: cannot reach the lock service, trying again: ";
  Reporter quiet(true);
  EXPECT_EQ(said([&] {
              quiet.warning({"job", silent});
              quiet.connection({State::reconnecting, refused});
              quiet.warning({"job", {errc::ambiguous, "h:1: Connection reset by peer"}});
            }),
            first + "h:1: no answer in time\n");
  EXPECT_EQ(quiet.loss_reason(), ": its lease could not be renewed: h:1: Connection reset by peer");
  EXPECT_EQ(said([&] { quiet.connection({State::connected, {}}); }), "");
  EXPECT_EQ(said([&] {
              quiet.connection({State::reconnecting, refused});
              quiet.warning({"job", silent});
            }),
            first + "h:1: Connection refused\n");
}

TEST_F(ReporterTest, SaysNoOtherTroubleWhenQuiet) {
  Reporter quiet(true);
  EXPECT_EQ(said([&] {
              quiet.warning({"job", read_only});
              quiet.warning({"", {errc::unavailable, "it may evict locks"}});
            }),
            "");
}

TEST_F(ReporterTest, LeavesTheFailureOfATryToTheTry) {
  for (const bool quiet : {false, true}) {
    Reporter tries(quiet, true);
    EXPECT_EQ(said([&] {
                tries.warning({"job", refused});
                tries.connection({State::reconnecting, refused});
                tries.connection({State::connected, {}});
              }),
              "");
    EXPECT_EQ(tries.last_failure(), "h:1: Connection refused");
    tries.acquired({"job", FencingToken(1), {}});
    EXPECT_NE(said([&] { tries.warning({"job", refused}); }), "");
  }
}

TEST_F(ReporterTest, KnowsWhetherTheServiceWasEverReachedAndWhatItFailedOf) {
  EXPECT_FALSE(reporter.reached());
  EXPECT_EQ(reporter.last_failure(), "");
  warn(silent), break_connection(refused);
  EXPECT_FALSE(reporter.reached());
  EXPECT_EQ(reporter.last_failure(), "h:1: Connection refused");
  warn({errc::ambiguous, "h:1: Connection reset by peer"}), warn(read_only);
  EXPECT_EQ(reporter.last_failure(), "h:1: Connection reset by peer");
  connect();
  EXPECT_TRUE(reporter.reached());
  break_connection(refused);
  EXPECT_TRUE(reporter.reached()) << "it was, once";
  Reporter without_news(false);
  without_news.acquired({"job", FencingToken(1), {}});
  EXPECT_TRUE(without_news.reached());
}

TEST_F(ReporterTest, SaysNothingMoreOnceTheEndWasSaid) {
  reporter.fall_silent();
  EXPECT_EQ(said([&] { warn(silent), break_connection(refused), connect(); }), "");
}

TEST_F(ReporterTest, KnowsWhetherThereIsAConnection) {
  EXPECT_FALSE(reporter.connected());
  connect();
  EXPECT_TRUE(reporter.connected());
  break_connection(refused);
  EXPECT_FALSE(reporter.connected());
}

TEST_F(ReporterTest, NamesTheLastRenewalFailureAsReasonBeforeTheLeaseHasEnded) {
  EXPECT_EQ(reporter.loss_reason(), "");
  break_connection(silent);
  warn(silent), warn(refused);
  EXPECT_EQ(reporter.loss_reason(), ": its lease could not be renewed: h:1: Connection refused");
}

TEST_F(ReporterTest, NamesTheLastRenewalFailureBesideTheLoss) {
  warn(silent);
  reporter.lost({"job", FencingToken(1), {errc::lost, "it ran out"}});
  EXPECT_EQ(reporter.loss_reason(), ": it ran out (last failed renewal: h:1: no answer in time)");
}

TEST_F(ReporterTest, BlamesNothingThatWasOver) {
  warn(silent);
  reporter.acquired({"job", FencingToken(1), {}});
  EXPECT_EQ(reporter.loss_reason(), "") << "trouble of the wait";
  warn(silent);
  renew();
  EXPECT_EQ(reporter.loss_reason(), "");
  reporter.lost({"job", FencingToken(1), {errc::lost, "taken away"}});
  EXPECT_EQ(reporter.loss_reason(), ": taken away");
}

class VerboseReporterTest : public ReporterTest {
 protected:
  TimePoint now{};
  Reporter verbose{false, false, true, [this] { return now; }};
};

TEST_F(VerboseReporterTest, SaysWhatHappensInGoodOrder) {
  EXPECT_EQ(said([&] {
              verbose.connection({State::connected, {}});
              verbose.connection({State::connected, {}});
              verbose.acquired({"job", FencingToken(7), std::chrono::milliseconds(12)});
              verbose.released({"job", FencingToken(7), std::chrono::milliseconds(5200), true});
            }),
            "dlock: connected to the lock service\n"
            "dlock: took \"job\" with token 7 after 12 ms\n"
            "dlock: freed \"job\" after 5.2 s\n");
  EXPECT_EQ(said([&] {
              connect();
              reporter.acquired({"job", FencingToken(7), {}});
              reporter.released({"job", FencingToken(7), {}, true});
            }),
            "");
}

TEST_F(VerboseReporterTest, SaysThatARenewalCameWhenHalfOfTheLeaseHadPassed) {
  const auto renew_after = [&](std::chrono::seconds pause) {
    now += pause;
    verbose.renewed({"job", FencingToken(7), std::chrono::milliseconds(1500)});
  };
  verbose.acquired({"job", FencingToken(7), {}});
  verbose.expect_renewals(std::chrono::seconds(30));
  EXPECT_EQ(said([&] { renew_after(std::chrono::seconds(10)), renew_after(std::chrono::seconds(15)); }), "");
  EXPECT_EQ(said([&] { renew_after(std::chrono::seconds(16)); }),
            "dlock: renewed \"job\" late: 16.0 s after the time before, of a lease of 30.0 s; answered after 1.5 s\n");
}

TEST_F(VerboseReporterTest, AlsoSaysWhatOthersSay) {
  EXPECT_EQ(said([&] { verbose.warning({"job", silent}); }), "dlock: warning: h:1: no answer in time\n");
}

}  // namespace
}  // namespace dlock::cli
