#include "backends/zookeeper/connection/errors.hpp"

#include <gtest/gtest.h>
#include <zookeeper/zookeeper.h>

#include <initializer_list>
#include <string>

namespace dlock::zookeeper {

namespace {

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
         {ZCONNECTIONLOSS, ZOPERATIONTIMEOUT, ZCLOSING, ZSYSTEMERROR, ZMARSHALLINGERROR});
}

TEST(ZooKeeperErrors, TellTheEndOfTheSession) {
  expect(Problem::session_over, errc::unavailable, {ZSESSIONEXPIRED, ZINVALIDSTATE});
  expect(Problem::session_over, errc::access_denied, {ZAUTHFAILED, ZSESSIONCLOSEDREQUIRESASLAUTH});
}

TEST(ZooKeeperErrors, TellWhatIsWorthAnotherTry) {
  expect(Problem::not_executed, errc::unavailable, {ZTHROTTLEDOP, ZSESSIONMOVED, ZNOTREADONLY});
}

TEST(ZooKeeperErrors, TellWhatIsNot) {
  expect(Problem::no_rights, errc::access_denied, {ZNOAUTH, ZINVALIDACL});
  expect(Problem::other, errc::invalid_argument, {ZBADARGUMENTS});
  expect(Problem::other, errc::unsupported, {ZUNIMPLEMENTED, ZEPHEMERALONLOCALSESSION});
  expect(Problem::other, errc::protocol, {ZNOTEMPTY, ZNOCHILDRENFOREPHEMERALS});
}

TEST(ZooKeeperErrors, TellNodesThatAreMissingOrInTheWay) {
  EXPECT_EQ(problem_of(ZNONODE), Problem::no_node);
  EXPECT_EQ(problem_of(ZNODEEXISTS), Problem::node_exists);
}

TEST(ZooKeeperErrors, ACodeNobodyKnowsIsFinalAndShown) {
  expect(Problem::other, errc::protocol, {-9999});
  EXPECT_NE(failure_of(-9999, "/a").detail.find("-9999"), std::string::npos);
}

TEST(ZooKeeperErrors, NameThePathAndTheCode) {
  const std::string text = failure_of(ZNOAUTH, "/locks/a\n").detail;
  EXPECT_NE(text.find("/locks/a"), std::string::npos) << text;
  EXPECT_NE(text.find("ZNOAUTH"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

}  // namespace

}  // namespace dlock::zookeeper
