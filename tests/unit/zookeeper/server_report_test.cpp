#include "backends/zookeeper/administration/server_report.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dlock::zookeeper {

namespace {

using Severity = Finding::Severity;

TEST(ServerAnswers, SrvrTellsVersionAndMode) {
  const auto status = read_srvr(
      "Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2024-12-29 17:54 UTC\n"
      "Latency min/avg/max: 0/2.4298/18\nReceived: 125\nSent: 129\nConnections: 2\nOutstanding: 0\nZxid: 0x40\n"
      "Mode: follower\nNode count: 7\n");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->version, "3.8.0");
  EXPECT_EQ(status->mode, "follower");
}

TEST(ServerAnswers, AServerWithoutItsEnsembleTellsNothing) {
  EXPECT_FALSE(read_srvr("This ZooKeeper instance is not currently serving requests\n"));
  EXPECT_FALSE(read_srvr("HTTP/1.1 400 Bad Request\r\n\r\n"));
  EXPECT_FALSE(read_srvr(""));
}

TEST(ServerAnswers, ARefusedWordIsKnown) {
  EXPECT_TRUE(is_refusal("srvr is not executed because it is not in the whitelist.\n"));
  EXPECT_FALSE(is_refusal("Mode: leader\n"));
}

std::string srvr(const std::string& mode, const std::string& version = "3.8.0") {
  return "Zookeeper version: " + version + "-abc, built on x\nConnections: 3\nMode: " + mode + "\n";
}

ServerReport server(const std::string& name, const std::string& mode) {
  return {.host = {.name = name, .port = 2181}, .srvr = srvr(mode)};
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
  const Finding* const first = find(findings, "server", Severity::ok);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->message, "a:2181: ZooKeeper 3.8.0, follower");
}

TEST(ServerReports, OneServerThatIsDownIsAWarningAndAllAreAnError) {
  EXPECT_EQ(worst(judge({server("a", "follower"), unreachable("b"), server("c", "leader")})), Severity::warning);
  EXPECT_EQ(worst(judge({unreachable("a"), unreachable("b")})), Severity::error);
}

TEST(ServerReports, SeveralServersThatAreNoEnsembleAreAnError) {
  const auto two = judge({server("a", "standalone"), server("b", "standalone")});
  EXPECT_NE(find(two, "ensemble", Severity::error), nullptr);
  EXPECT_NE(find(judge({server("a", "leader"), server("b", "leader")}), "ensemble", Severity::error), nullptr);
}

TEST(ServerReports, AServerThatStandsAloneIsWorthANote) {
  const auto findings = judge({server("a", "standalone")});
  EXPECT_NE(find(findings, "ensemble", Severity::note), nullptr);
  EXPECT_EQ(worst(findings), Severity::note);
}

TEST(ServerReports, AUrlThatNamesOneServerOfAnEnsembleIsAWarning) {
  EXPECT_NE(find(judge({server("a", "follower")}), "ensemble", Severity::warning), nullptr);
  EXPECT_EQ(worst(judge({server("a", "follower"), server("b", "leader")})), Severity::ok);
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

TEST(ServerReports, AServerThatDoesNotTellIsWorthANote) {
  ServerReport secretive = server("a", "follower");
  secretive.srvr = "srvr is not executed because it is not in the whitelist.\n";
  const auto findings = judge({secretive});
  EXPECT_NE(find(findings, "server", Severity::note), nullptr);
  EXPECT_EQ(worst(findings), Severity::note);
}

}  // namespace

}  // namespace dlock::zookeeper
