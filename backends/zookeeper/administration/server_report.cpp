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

// Cuts the first line off.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
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
    for (const ServerReport& report : reports_) server_findings(report);
    judge_ensemble();
    return std::move(findings_);
  }

 private:
  void add(Severity severity, std::string check, std::string message) {
    findings_.push_back({severity, std::move(check), std::move(message)});
  }

  void server_findings(const ServerReport& report) {
    const std::string name = report.host.to_string();
    if (report.failure) {
      const bool all = std::all_of(reports_.begin(), reports_.end(),
                                   [](const ServerReport& other) { return other.failure.has_value(); });
      return add(all ? Severity::error : Severity::warning, "server", report.failure->detail);
    }
    if (is_refusal(report.srvr)) {
      return add(Severity::note, "server",
                 name + " accepts connections; its role is unknown, because its 4lw.commands.whitelist lacks srvr");
    }
    const auto status = read_srvr(report.srvr);
    if (!status) {
      return add(Severity::warning, "server",
                 name + " does not serve; perhaps it has lost its ensemble. It says: " +
                     shown(report.srvr.substr(0, report.srvr.find('\n'))));
    }
    if (common::parse_version(status->version) < oldest_version) {
      add(Severity::error, "version",
          name + " runs ZooKeeper " + shown(status->version) + "; dlock needs 3.5.3 or later");
    }
    if (status->mode == "read-only") {
      add(Severity::warning, "server", name + " has lost its ensemble and only answers reads");
    } else {
      add(Severity::ok, "server", name + ": ZooKeeper " + shown(status->version) + ", " + shown(status->mode));
    }
    standalone_ += status->mode == "standalone" ? 1 : 0;
    leaders_ += status->mode == "leader" ? 1 : 0;
    members_ += status->mode == "standalone" ? 0 : 1;
  }

  void judge_ensemble() {
    if (standalone_ > 0 && reports_.size() > 1) {
      return add(Severity::error, "ensemble",
                 "the URL names several servers, and one of them is standalone: they are not one ensemble, and two "
                 "clients can hold the same lock");
    }
    if (leaders_ > 1) {
      return add(Severity::error, "ensemble",
                 "the URL names servers of different ensembles, because " + std::to_string(leaders_) +
                     " of them are leaders: two clients can hold the same lock");
    }
    if (standalone_ > 0) {
      return add(Severity::note, "ensemble",
                 "one standalone server: no lock can be acquired while it is down, and there is no copy of its data");
    }
    if (members_ == 1 && reports_.size() == 1) {
      add(Severity::warning, "ensemble",
          "the URL names only one server of an ensemble: dlock cannot use the others when that one is down");
    }
  }

  const std::vector<ServerReport>& reports_;
  std::vector<Finding> findings_;
  std::size_t standalone_ = 0;
  std::size_t leaders_ = 0;
  std::size_t members_ = 0;
};

}  // namespace

std::optional<ServerStatus> read_srvr(std::string_view text) {
  ServerStatus status;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, colon);
    const std::string_view value = line.substr(colon + 2);
    if (key == "Zookeeper version" || key == "ZooKeeper version") {
      status.version = value.substr(0, value.find_first_of("-, "));
    } else if (key == "Mode") {
      status.mode = value;
    }
  }
  if (status.version.empty() || status.mode.empty()) return std::nullopt;
  return status;
}

bool is_refusal(std::string_view text) noexcept {
  return text.find("is not executed because it is not in the whitelist") != std::string_view::npos;
}

std::vector<Finding> judge(const std::vector<ServerReport>& reports) {
  return Judgement(reports).run();
}

}  // namespace dlock::zookeeper
