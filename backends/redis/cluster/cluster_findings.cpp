#include "backends/redis/cluster/cluster_findings.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "backends/redis/administration/diagnosis.hpp"
#include "backends/redis/cluster/hash_slot.hpp"
#include "backends/redis/connection/server_info.hpp"
#include "util/duration_text.hpp"

namespace dlock::redis {

using Severity = Finding::Severity;

std::vector<Finding> judge_cluster(const ClusterState& state, const Options& options) {
  std::size_t covered = 0;
  std::set<std::string> masters;
  for (const SlotRange& range : state.ranges) {
    covered += static_cast<std::size_t>(range.last - range.first) + 1;
    masters.insert(range.master.to_string());
  }
  std::vector<Finding> findings;
  const std::string count = std::to_string(masters.size()) + (masters.size() == 1 ? " master has" : " masters have");
  if (covered < slots) {
    findings.push_back({Severity::error, "cluster",
                        count + " " + std::to_string(covered) + " of " + std::to_string(slots) +
                            " slots; locks whose slot nobody has cannot be taken"});
  } else {
    findings.push_back({Severity::ok, "cluster", count + " all slots"});
  }
  std::string alone;
  std::uint64_t fewest = slots;
  for (const auto& [master, replicas] : state.replicas) {
    fewest = std::min(fewest, replicas);
    if (replicas == 0) alone += (alone.empty() ? "" : ", ") + master;
  }
  if (state.replicas.empty()) {
    findings.push_back({Severity::note, "failover", "replicas cannot be counted without the right to run INFO"});
  } else if (!alone.empty()) {
    findings.push_back({Severity::warning, "failover", "no replica that could take its place: " + alone});
  } else if (options.replicas_ack < fewest) {
    findings.push_back({Severity::note, "failover",
                        "every master has replicas; a failover may lose the latest locks, which replicas_ack=" +
                            std::to_string(fewest) + " makes less likely, and fencing tokens harmless"});
  } else {
    findings.push_back({Severity::ok, "failover", "every master has replicas, which acknowledge locks"});
  }
  if (!state.node_timeout) {
    findings.push_back(
        {Severity::note, "node-timeout", "cluster-node-timeout cannot be checked without the right to run CONFIG GET"});
    return findings;
  }
  const std::string down_after = "a master counts as down when it was silent for " + util::to_text(*state.node_timeout);
  const bool longer = *state.node_timeout > options.lease;
  findings.push_back({longer ? Severity::note : Severity::ok, "node-timeout",
                      longer ? down_after + " (cluster-node-timeout), longer than a lease of " +
                                   util::to_text(options.lease) + ": locks are lost before another takes its place"
                             : down_after});
  return findings;
}

namespace {

// One master after the other. Of all but the first one, what is well is not said again.
class ClusterDiagnosis : public std::enable_shared_from_this<ClusterDiagnosis> {
 public:
  ClusterDiagnosis(Cluster& cluster, Backend::Handler<std::vector<Finding>> done)
      : cluster_(cluster), done_(std::move(done)) {}

  void start() {
    cluster_.masters([self = shared_from_this()](Result<std::vector<common::Host>> masters) {
      if (!masters.ok()) {
        return self->done_(std::vector<Finding>{{Severity::error, "server", masters.failure().detail}});
      }
      self->masters_ = std::move(masters.value());
      self->next();
    });
  }

 private:
  void next() {
    if (at_ == masters_.size()) return conclude();
    const common::Host host = masters_[at_++];
    Server* const server = cluster_.master_at(host);
    if (server == nullptr) return next();
    diagnose(server->commands(), [self = shared_from_this(), host](Result<std::vector<Finding>> said) {
      if (!said.ok()) return self->done_(std::move(said));
      for (Finding& finding : said.value()) {
        if (self->at_ > 1 && finding.severity == Severity::ok) continue;
        if (finding.check != "server") finding.message = host.to_string() + ": " + finding.message;
        self->findings_.push_back(std::move(finding));
      }
      self->ask(host, {"INFO", "replication"}, [self, host](const Reply& reply) {
        const auto replicas = info_number(reply.text, "connected_slaves");
        if (replicas) self->state_.replicas[host.to_string()] = *replicas;
        self->next();
      });
    });
  }

  // Whoever may not ask gets an empty answer.
  void ask(const common::Host& host, Command command, std::function<void(const Reply&)> then) {
    Server* const server = cluster_.master_at(host);
    if (server == nullptr) return then({});
    const TimePoint deadline = saturating_add(cluster_.executor().now(), cluster_.options().response_timeout);
    (void)server->commands().request(std::move(command), deadline,
                                     [then = std::move(then)](const Result<Reply>& reply, TimePoint) {
                                       then(reply.ok() ? reply.value() : Reply{});
                                     });
  }

  void conclude() {
    ask(masters_.front(), {"CONFIG", "GET", "cluster-node-timeout"}, [self = shared_from_this()](const Reply& reply) {
      if (const auto ms = number_in(reply, "cluster-node-timeout")) {
        self->state_.node_timeout = std::chrono::milliseconds(*ms);
      }
      self->state_.ranges = self->cluster_.ranges();
      for (Finding& finding : judge_cluster(self->state_, self->cluster_.options())) {
        self->findings_.push_back(std::move(finding));
      }
      self->done_(std::move(self->findings_));
    });
  }

  Cluster& cluster_;
  const Backend::Handler<std::vector<Finding>> done_;
  std::vector<common::Host> masters_;
  std::size_t at_ = 0;
  ClusterState state_;
  std::vector<Finding> findings_;
};

}  // namespace

void diagnose(Cluster& cluster, Backend::Handler<std::vector<Finding>> done) {
  std::make_shared<ClusterDiagnosis>(cluster, std::move(done))->start();
}

}  // namespace dlock::redis
