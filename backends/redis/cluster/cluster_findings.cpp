#include "backends/redis/cluster/cluster_findings.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "backends/redis/administration/diagnosis.hpp"
#include "backends/redis/connection/server_info.hpp"
#include "backends/redis/hash_slot.hpp"

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
                            " slots; locks in the other slots cannot be acquired"});
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
    findings.push_back({Severity::warning, "failover", "masters without a replica that could replace them: " + alone});
  } else if (options.replicas_ack < fewest) {
    findings.push_back({Severity::note, "failover",
                        "every master has replicas; a failover may lose the latest locks, which replicas_ack=" +
                            std::to_string(fewest) + " makes less likely; fencing tokens make it harmless"});
  } else {
    findings.push_back({Severity::ok, "failover", "every master has replicas, which acknowledge locks"});
  }
  if (!state.node_timeout) {
    findings.push_back(
        {Severity::note, "node-timeout", "cluster-node-timeout cannot be checked without the right to run CONFIG GET"});
    return findings;
  }
  findings.push_back(judge_down_after("node-timeout", "cluster-node-timeout", *state.node_timeout, options));
  return findings;
}

namespace {

// Queries all masters at once. Reports findings of severity ok only of the first one.
class ClusterDiagnosis : public std::enable_shared_from_this<ClusterDiagnosis> {
 public:
  ClusterDiagnosis(Cluster& cluster, Backend::Handler<std::vector<Finding>> done)
      : cluster_(cluster), done_(std::move(done)) {}

  void start() {
    cluster_.masters(
        cluster_.answer_by(), [self = shared_from_this()](const Result<std::vector<common::Host>>& masters) {
          if (!masters.ok()) {
            return self->done_(std::vector<Finding>{{Severity::error, "server", masters.failure().detail}});
          }
          self->ask(masters.value());
        });
  }

 private:
  void ask(const std::vector<common::Host>& masters) {
    state_.ranges = cluster_.ranges();
    said_.resize(masters.size());
    ++under_way_;  // this call
    for (std::size_t i = 0; i < masters.size(); ++i) {
      Node* const node = cluster_.master_at(masters[i]);
      if (node == nullptr) continue;
      ++under_way_;
      diagnose(node->commands(), [self = shared_from_this(), i, host = masters[i]](Result<std::vector<Finding>> said) {
        if (said.ok()) self->take(i, host, std::move(said.value()));
        self->answered();
      });
      question(*node, {"INFO", "replication"}, [this, host = masters[i]](const Reply& reply) {
        if (const auto count = info_number(reply.text, "connected_slaves")) state_.replicas[host.to_string()] = *count;
      });
      question(*node, {"CONFIG", "GET", "cluster-node-timeout"}, [this](const Reply& reply) {
        const auto ms = number_in(reply, "cluster-node-timeout");
        if (ms) state_.node_timeout = std::chrono::milliseconds(*ms);
      });
    }
    answered();
  }

  void take(std::size_t i, const common::Host& host, std::vector<Finding> findings) {
    for (Finding& finding : findings) {
      if (i > 0 && finding.severity == Severity::ok) continue;
      if (finding.check != "server") finding.message = host.to_string() + ": " + finding.message;
      said_[i].push_back(std::move(finding));
    }
  }

  void question(Node& node, Command command, std::function<void(const Reply&)> take) {
    ++under_way_;
    (void)node.commands().request(
        std::move(command), cluster_.answer_by(),
        [self = shared_from_this(), take = std::move(take)](const Result<Reply>& reply, TimePoint) {
          if (reply.ok()) take(reply.value());
          self->answered();
        });
  }

  void answered() {
    if (--under_way_ > 0) return;
    std::vector<Finding> all;
    said_.push_back(judge_cluster(state_, cluster_.options()));
    for (std::vector<Finding>& findings : said_) {
      all.insert(all.end(), std::make_move_iterator(findings.begin()), std::make_move_iterator(findings.end()));
    }
    done_(std::move(all));
  }

  Cluster& cluster_;
  const Backend::Handler<std::vector<Finding>> done_;
  int under_way_ = 0;
  ClusterState state_;
  std::vector<std::vector<Finding>> said_;  // by master
};

}  // namespace

void diagnose(Cluster& cluster, Backend::Handler<std::vector<Finding>> done) {
  std::make_shared<ClusterDiagnosis>(cluster, std::move(done))->start();
}

}  // namespace dlock::redis
