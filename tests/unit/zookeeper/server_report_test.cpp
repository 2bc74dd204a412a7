#include "backends/zookeeper/administration/server_report.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dlock::zookeeper {

namespace {

using Severity = Finding::Severity;

std::string srvr(const std::string& mode, const std::string& version = "3.8.0") {
  return "Zookeeper version: " + version + "-abc, built on x\nConnections: 3\nMode: " + mode + "\n";
}

constexpr const char* three = "maxClientCnxns=60\nserver.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n";

ServerReport server(const std::string& name, const std::string& mode, const std::string& conf = three) {
  return {.host = {.name = name, .port = 2181},
          .srvr = srvr(mode),
          .conf = conf,
          .cons = " /10.0.0.9:1[1](q)\n",
          .our_address = "10.0.0.9"};
}

ServerReport unreachable(const std::string& name) {
  return {.host = {.name = name, .port = 2181}, .failure = Failure{errc::unavailable, name + ": no answer"}};
}

const Finding* find(const std::vector<Finding>& findings, const std::string& check, Severity severity) {
  for (const Finding& finding : findings) {
    if (finding.check == check && finding.severity == severity) return &finding;
  }
  return nullptr;
}

Severity worst(const std::vector<Finding>& findings) {
  Severity worst = Severity::ok;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  return worst;
}

TEST(ServerReports, AHealthyEnsembleIsFine) {
  const auto findings = judge({server("a", "follower"), server("b", "leader"), server("c", "follower")});
  EXPECT_EQ(worst(findings), Severity::ok);
  const Finding* const ensemble = find(findings, "ensemble", Severity::ok);
  ASSERT_NE(ensemble, nullptr);
  EXPECT_NE(ensemble->message.find("3 servers"), std::string::npos);
  const Finding* const first = find(findings, "server", Severity::ok);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->message, "a:2181: ZooKeeper 3.8.0, follower");
}

TEST(ServerReports, OneServerThatIsDownIsAWarningAndAllAreAnError) {
  EXPECT_EQ(worst(judge({server("a", "follower"), unreachable("b"), server("c", "leader")})), Severity::warning);
  EXPECT_EQ(worst(judge({unreachable("a"), unreachable("b")})), Severity::error);
}

TEST(ServerReports, SeveralServersThatAreNoEnsembleAreAnError) {
  const auto two = judge({server("a", "standalone", ""), server("b", "standalone", "")});
  EXPECT_NE(find(two, "ensemble", Severity::error), nullptr);
  EXPECT_NE(find(judge({server("a", "leader"), server("b", "leader")}), "ensemble", Severity::error), nullptr);
}

TEST(ServerReports, AServerThatStandsAloneIsWorthANote) {
  const auto findings = judge({server("a", "standalone", "maxClientCnxns=60\n")});
  EXPECT_NE(find(findings, "ensemble", Severity::note), nullptr);
  EXPECT_EQ(worst(findings), Severity::note);
}

TEST(ServerReports, AUrlThatNamesOneOfThreeServersIsAWarning) {
  EXPECT_NE(find(judge({server("a", "follower")}), "ensemble", Severity::warning), nullptr);
  EXPECT_NE(find(judge({server("a", "follower"), server("b", "leader")}), "ensemble", Severity::note), nullptr);
}

TEST(ServerReports, AnEvenEnsembleIsWorthANote) {
  const std::string conf = "server.1=a:1:2\nserver.2=b:1:2\n";
  EXPECT_NE(find(judge({server("a", "follower", conf), server("b", "leader", conf)}), "ensemble", Severity::note),
            nullptr);
}

TEST(ServerReports, AServerWithoutItsEnsembleIsAWarning) {
  ServerReport lost = server("a", "follower");
  lost.srvr = "This ZooKeeper instance is not currently serving requests\n";
  const auto findings = judge({lost});
  const Finding* const warning = find(findings, "server", Severity::warning);
  ASSERT_NE(warning, nullptr);
  EXPECT_NE(warning->message.find("not currently serving"), std::string::npos);
  EXPECT_NE(find(judge({server("a", "read-only")}), "server", Severity::warning), nullptr);
}

TEST(ServerReports, AnOldServerIsAnError) {
  ServerReport old = server("a", "standalone");
  for (const char* version : {"3.4.14", "3.5.2", "2.9.9"}) {
    old.srvr = srvr("standalone", version);
    EXPECT_NE(find(judge({old}), "version", Severity::error), nullptr) << version;
  }
  for (const char* version : {"3.5.3", "3.10.0", "4.0.0"}) {
    old.srvr = srvr("standalone", version);
    EXPECT_EQ(find(judge({old}), "version", Severity::error), nullptr) << version;
  }
}

TEST(ServerReports, WordsThatAServerDoesNotAnswerAreNotes) {
  const std::string refused = " is not executed because it is not in the whitelist.\n";
  ServerReport secretive = server("a", "follower", "conf" + refused);
  secretive.cons = "cons" + refused;
  auto findings = judge({secretive});
  EXPECT_EQ(worst(findings), Severity::note);
  EXPECT_NE(find(findings, "clients", Severity::note), nullptr);
  EXPECT_NE(find(findings, "ensemble", Severity::note), nullptr);
  secretive.srvr = "srvr" + refused;
  findings = judge({secretive});
  EXPECT_NE(find(findings, "server", Severity::note), nullptr);
  EXPECT_EQ(worst(findings), Severity::note);
}

TEST(ServerReports, ClientsNearTheLimitAreAWarning) {
  ServerReport full = server("a", "standalone", "maxClientCnxns=5\n");
  full.cons.clear();
  for (int i = 1; i <= 3; ++i) full.cons += " /10.0.0.9:" + std::to_string(i) + "[1](q)\n";
  EXPECT_NE(find(judge({full}), "clients", Severity::ok), nullptr);
  full.cons += " /10.0.0.9:4[1](q)\n";
  EXPECT_NE(find(judge({full}), "clients", Severity::warning), nullptr);
  full.conf = "maxClientCnxns=0\n";
  EXPECT_NE(find(judge({full}), "clients", Severity::ok), nullptr) << "0 means without a limit";
}

}  // namespace

}  // namespace dlock::zookeeper
