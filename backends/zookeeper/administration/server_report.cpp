#include "backends/zookeeper/administration/server_report.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "backends/common/findings.hpp"
#include "util/names.hpp"

namespace dlock::zookeeper {

using Severity = Finding::Severity;

namespace {

// The first with container nodes.
constexpr common::Version oldest_version = {3, 5, 3};

// Returns the text behind the key in its line; empty without such a line.
std::string_view value_of(std::string_view key, std::string_view text) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view value = text.substr(at + key.size());
  return value.substr(0, value.find_first_of("\r\n"));
}

// From outside: bounded, and free of control characters.
std::string shown(std::string_view text) {
  const std::string quoted = util::quoted(text);
  return quoted.substr(1, quoted.size() - 2);
}

class Judgement {
 public:
  explicit Judgement(const std::vector<ServerReport>& reports) : reports_(reports) {}

  std::vector<Finding> run() {
    for (const ServerReport& report : reports_) judge_server(report);
    judge_ensemble();
    return std::move(findings_);
  }

 private:
  void add(Severity severity, std::string check, std::string message) {
    findings_.push_back({severity, std::move(check), std::move(message)});
  }

  void judge_server(const ServerReport& report) {
    const std::string name = report.host.to_string();
    if (!report.srvr.ok()) {
      const bool all = std::ranges::none_of(reports_, [](const ServerReport& other) { return other.srvr.ok(); });
      return add(all ? Severity::error : Severity::warning, "server", report.srvr.failure().detail);
    }
    const std::string& srvr = report.srvr.value();
    if (srvr.find("is not executed because it is not in the whitelist") != std::string::npos) {
      return add(Severity::note, "server",
                 name + " accepts connections; its role is unknown, because its 4lw.commands.whitelist lacks srvr");
    }
    std::string_view version = value_of("Zookeeper version: ", srvr);
    if (version.empty()) version = value_of("ZooKeeper version: ", srvr);
    version = version.substr(0, version.find_first_of("-, "));
    const std::string_view mode = value_of("\nMode: ", srvr);  // leader, follower, observer, standalone, read-only
    if (version.empty() || mode.empty()) {
      return add(Severity::warning, "server",
                 name + " does not serve; perhaps it has lost its ensemble. It says: " +
                     shown(srvr.substr(0, srvr.find('\n'))));
    }
    if (common::parse_version(version) < oldest_version) {
      add(Severity::error, "version", name + " runs ZooKeeper " + shown(version) + "; dlock needs 3.5.3 or later");
    }
    if (mode == "read-only") {
      add(Severity::warning, "server", name + " has lost its ensemble and only answers reads");
    } else {
      add(Severity::ok, "server", name + ": ZooKeeper " + shown(version) + ", " + shown(mode));
    }
    mode == "standalone" ? ++standalone_ : ++members_;
    if (mode == "leader") ++leaders_;
  }

  void judge_ensemble() {
    const bool several = reports_.size() > 1;
    if (standalone_ > 0 && several) {
      add(Severity::error, "ensemble",
          "the URL names several servers, and one of them is standalone: they are not one ensemble, and two clients "
          "can hold the same lock");
    } else if (standalone_ > 0) {
      add(Severity::note, "ensemble",
          "one standalone server: no lock can be acquired while it is down, and there is no copy of its data");
    } else if (leaders_ > 1) {
      add(Severity::error, "ensemble",
          "the URL names servers of different ensembles, because " + std::to_string(leaders_) +
              " of them are leaders: two clients can hold the same lock");
    } else if (!several && members_ == 1) {
      add(Severity::warning, "ensemble",
          "the URL names only one server of an ensemble: dlock cannot use the others when that one is down");
    }
  }

  const std::vector<ServerReport>& reports_;
  std::vector<Finding> findings_;
  std::size_t standalone_ = 0;
  std::size_t leaders_ = 0;
  std::size_t members_ = 0;  // of ensembles
};

}  // namespace

std::vector<Finding> judge(const std::vector<ServerReport>& reports) {
  return Judgement(reports).run();
}

}  // namespace dlock::zookeeper
