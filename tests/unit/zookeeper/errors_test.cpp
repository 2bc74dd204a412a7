#include "backends/zookeeper/connection/errors.hpp"

#include <gtest/gtest.h>
#include <zookeeper/zookeeper.h>

#include <string>
#include <vector>

namespace dlock::zookeeper {

namespace {

// The library has no names for these.
constexpr int unknown_session = -12;
constexpr int request_timeout = -122;
constexpr int quota_exceeded = -125;

TEST(ZooKeeperErrors, Code_HasItsMeaningForTheRequest) {
  struct Row {
    Problem problem;
    errc code;
    std::vector<int> codes;
  };
  const std::vector<Row> rows = {
      // A request that was under way may have been carried out, or may still be.
      {Problem::unknown_outcome,
       errc::ambiguous,
       {ZCONNECTIONLOSS, ZOPERATIONTIMEOUT, ZCLOSING, ZSYSTEMERROR, ZRUNTIMEINCONSISTENCY, ZDATAINCONSISTENCY,
        ZMARSHALLINGERROR, ZSSLCONNECTIONERROR, request_timeout}},
      {Problem::session_over, errc::unavailable, {ZSESSIONEXPIRED, ZINVALIDSTATE, unknown_session}},
      {Problem::session_over, errc::access_denied, {ZAUTHFAILED, ZSESSIONCLOSEDREQUIRESASLAUTH}},
      {Problem::not_executed,
       errc::unavailable,
       {ZTHROTTLEDOP, ZSESSIONMOVED, ZNOTREADONLY, ZNEWCONFIGNOQUORUM, ZRECONFIGINPROGRESS, quota_exceeded}},
      {Problem::no_rights, errc::access_denied, {ZNOAUTH, ZINVALIDACL}},
      {Problem::other, errc::invalid_argument, {ZBADARGUMENTS, ZINVALIDCALLBACK}},
      {Problem::other, errc::unsupported, {ZUNIMPLEMENTED, ZEPHEMERALONLOCALSESSION, ZRECONFIGDISABLED}},
      {Problem::other, errc::protocol, {ZNOTEMPTY, ZNOCHILDRENFOREPHEMERALS, ZBADVERSION, ZNOWATCHER}},
      // A code nobody knows is temporary: it ends a try, not a wait.
      {Problem::not_executed, errc::unavailable, {-126, -9999}},
      {Problem::unknown_outcome, errc::ambiguous, {-50, 1}},
  };
  for (const auto& [problem, code, codes] : rows) {
    for (const int each : codes) {
      EXPECT_EQ(problem_of(each), problem) << each;
      EXPECT_EQ(failure_of(each, "/a").code, code) << each;
    }
  }
  EXPECT_EQ(problem_of(ZNONODE), Problem::no_node);
  EXPECT_EQ(problem_of(ZNODEEXISTS), Problem::node_exists);
  EXPECT_EQ(problem_of(ZOK), Problem::none);
  EXPECT_FALSE(failure_of(ZOK, "/a").code);
}

TEST(ZooKeeperErrors, Failure_NamesThePathAndTheCode) {
  const std::string text = failure_of(ZNOAUTH, "/locks/a\n").detail;
  EXPECT_NE(text.find("/locks/a"), std::string::npos) << text;
  EXPECT_NE(text.find("ZNOAUTH"), std::string::npos) << text;
  EXPECT_NE(failure_of(-9999, "/a").detail.find("-9999"), std::string::npos);
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  const std::string over = failure_of(ZSESSIONCLOSEDREQUIRESASLAUTH, "/locks/a").detail;
  EXPECT_EQ(over.find("/locks/a"), std::string::npos) << "it is about the session: " << over;
  EXPECT_NE(over.find("auth="), std::string::npos) << over;
}

}  // namespace

}  // namespace dlock::zookeeper
