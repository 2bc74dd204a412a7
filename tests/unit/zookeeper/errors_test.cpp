#include "backends/zookeeper/connection/errors.hpp"

#include <gtest/gtest.h>
#include <zookeeper/zookeeper.h>

#include <initializer_list>
#include <string>

namespace dlock::zookeeper {

namespace {

// The library has no names for these.
constexpr int unknown_session = -12;
constexpr int request_timeout = -122;
constexpr int quota_exceeded = -125;

void expect(Problem problem, errc code, std::initializer_list<int> codes) {
  for (const int each : codes) {
    EXPECT_EQ(problem_of(each), problem) << each;
    EXPECT_EQ(failure_of(each, "/a").code, code) << each;
  }
}

TEST(ZooKeeperErrors, SuccessIsNoFailure) {
  EXPECT_EQ(problem_of(ZOK), Problem::none);
  EXPECT_FALSE(failure_of(ZOK, "/a").code);
}

// A request that was under way may have been carried out, or may still be.
TEST(ZooKeeperErrors, ABrokenConnectionSaysNothingAboutTheOutcome) {
  expect(Problem::unknown_outcome, errc::ambiguous,
         {ZCONNECTIONLOSS, ZOPERATIONTIMEOUT, ZCLOSING, ZSYSTEMERROR, ZRUNTIMEINCONSISTENCY, ZDATAINCONSISTENCY,
          ZMARSHALLINGERROR, ZSSLCONNECTIONERROR, request_timeout});
}

TEST(ZooKeeperErrors, TellTheEndOfTheSession) {
  expect(Problem::session_over, errc::unavailable, {ZSESSIONEXPIRED, ZINVALIDSTATE, unknown_session});
  expect(Problem::session_over, errc::access_denied, {ZAUTHFAILED, ZSESSIONCLOSEDREQUIRESASLAUTH});
}

TEST(ZooKeeperErrors, TellWhatIsWorthAnotherTry) {
  expect(Problem::not_executed, errc::unavailable,
         {ZTHROTTLEDOP, ZSESSIONMOVED, ZNOTREADONLY, ZNEWCONFIGNOQUORUM, ZRECONFIGINPROGRESS, quota_exceeded});
}

TEST(ZooKeeperErrors, TellWhatIsNot) {
  expect(Problem::no_rights, errc::access_denied, {ZNOAUTH, ZINVALIDACL});
  expect(Problem::other, errc::invalid_argument, {ZBADARGUMENTS, ZINVALIDCALLBACK});
  expect(Problem::other, errc::unsupported, {ZUNIMPLEMENTED, ZEPHEMERALONLOCALSESSION, ZRECONFIGDISABLED});
  expect(Problem::other, errc::protocol, {ZNOTEMPTY, ZNOCHILDRENFOREPHEMERALS, ZBADVERSION, ZNOWATCHER});
}

TEST(ZooKeeperErrors, TellNodesThatAreMissingOrInTheWay) {
  EXPECT_EQ(problem_of(ZNONODE), Problem::no_node);
  EXPECT_EQ(problem_of(ZNODEEXISTS), Problem::node_exists);
}

// It ends a try, not a wait.
TEST(ZooKeeperErrors, ACodeNobodyKnowsIsTemporaryAndShown) {
  expect(Problem::not_executed, errc::unavailable, {-126, -9999});
  expect(Problem::unknown_outcome, errc::ambiguous, {-50, 1});
  EXPECT_NE(failure_of(-9999, "/a").detail.find("-9999"), std::string::npos);
}

TEST(ZooKeeperErrors, NameThePathAndTheCode) {
  const std::string text = failure_of(ZNOAUTH, "/locks/a\n").detail;
  EXPECT_NE(text.find("/locks/a"), std::string::npos) << text;
  EXPECT_NE(text.find("ZNOAUTH"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

TEST(ZooKeeperErrors, TheEndOfASessionNamesNoPath) {
  const std::string text = failure_of(ZSESSIONCLOSEDREQUIRESASLAUTH, "/locks/a").detail;
  EXPECT_EQ(text.find("/locks/a"), std::string::npos) << text;
  EXPECT_NE(text.find("auth="), std::string::npos) << text;
}

}  // namespace

}  // namespace dlock::zookeeper
