#include "backends/zookeeper/administration/server_report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace dlock::zookeeper {

namespace {

using Severity = Finding::Severity;

std::string srvr(const std::string& mode, const std::string& version = "3.8.0") {
  return "Zookeeper version: " + version + "-abc, built on x\nConnections: 3\nMode: " + mode + "\n";
}

ServerReport server(const std::string& name, const std::string& mode) {
  return {.host = {.name = name, .port = 2181}, .srvr = srvr(mode)};
}

ServerReport unreachable(const std::string& name) {
  return {.host = {.name = name, .port = 2181}, .srvr = Failure{errc::unavailable, name + ": no answer"}};
}

Severity worst(const std::vector<Finding>& findings) {
  Severity worst = Severity::ok;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  return worst;
}

ServerReport says(const std::string& words) {
  return {.host = {.name = "a", .port = 2181}, .srvr = words};
}

TEST(ServerReports, AreJudged) {
  struct Row {
    std::string what;
    std::vector<ServerReport> reports;
    Severity worst;
    // One of the findings; "": any.
    std::string check = {};
    std::string message = {};
  };
  const auto of_version = [](const std::string& version) { return says(srvr("standalone", version)); };
  const std::vector<Row> rows = {
      {"a healthy ensemble",
       {server("a", "follower"), server("b", "leader"), server("c", "follower")},
       Severity::ok,
       "server",
       "a:2181: ZooKeeper 3.8.0, follower"},
      {"one is down", {server("a", "follower"), unreachable("b"), server("c", "leader")}, Severity::warning, "server"},
      {"all are down", {unreachable("a"), unreachable("b")}, Severity::error, "server"},
      {"no ensemble", {server("a", "standalone"), server("b", "standalone")}, Severity::error, "ensemble"},
      {"two ensembles", {server("a", "leader"), server("b", "leader")}, Severity::error, "ensemble"},
      {"one alone", {server("a", "standalone")}, Severity::note, "ensemble"},
      {"one of several is named", {server("a", "follower")}, Severity::warning, "ensemble"},
      {"two of several are named", {server("a", "follower"), server("b", "leader")}, Severity::ok},
      {"without its ensemble",
       {says("This ZooKeeper instance is not currently serving requests\n")},
       Severity::warning,
       "server",
       "not currently serving"},
      {"it only reads", {server("a", "read-only")}, Severity::warning, "server", "only answers reads"},
      {"its whole answer",
       {says(
           "Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2024-12-29 17:54 UTC\nLatency min/avg/max: "
           "0/2.4/18\n"
           "Received: 125\nSent: 129\nConnections: 2\nOutstanding: 0\nZxid: 0x40\nMode: follower\r\nNode count: 7\n")},
       Severity::warning,
       "ensemble"},
      {"no server of ZooKeeper",
       {says("HTTP/1.1 400 Bad Request\r\n\r\n")},
       Severity::warning,
       "server",
       "HTTP/1.1 400"},
      {"nothing", {says("")}, Severity::warning, "server", "does not serve"},
      {"it does not tell",
       {says("srvr is not executed because it is not in the whitelist.\n")},
       Severity::note,
       "server",
       "whitelist"},
      {"too old", {of_version("3.4.14")}, Severity::error, "version"},
      {"a little too old", {of_version("3.5.2")}, Severity::error, "version"},
      {"much too old", {of_version("2.9.9")}, Severity::error, "version"},
      {"old enough", {of_version("3.5.3")}, Severity::note},
      {"two digits", {of_version("3.10.0")}, Severity::note},
      {"the next one", {of_version("4.0.0")}, Severity::note},
  };
  for (const auto& [what, reports, severity, check, message] : rows) {
    const auto findings = judge(reports);
    EXPECT_EQ(worst(findings), severity) << what;
    EXPECT_TRUE(std::ranges::any_of(findings, [&](const Finding& finding) {
      return finding.severity == severity && finding.check.find(check) != std::string::npos &&
             finding.message.find(message) != std::string::npos;
    })) << what;
  }
}

}  // namespace

}  // namespace dlock::zookeeper
