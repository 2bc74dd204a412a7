#include "backends/redis/cluster/cluster_findings.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "backends/redis/administration/diagnosis.hpp"
#include "backends/redis/cluster/hash_slot.hpp"
#include "backends/redis/connection/server_info.hpp"
#include "util/duration_text.hpp"

namespace dlock::redis {

using Severity = Finding::Severity;

std::vector<Finding> judge_cluster(const std::vector<SlotRange>& ranges, const Options& options,
                                   std::optional<std::chrono::milliseconds> node_timeout) {
  std::size_t covered = 0;
  std::map<std::string, std::size_t> replicas;
  for (const SlotRange& range : ranges) {
    covered += static_cast<std::size_t>(range.last - range.first) + 1;
    replicas[range.master.to_string()] = range.replicas;
  }
  std::vector<Finding> findings;
  const std::string masters = std::to_string(replicas.size()) + " masters";
  if (covered < slots) {
    findings.push_back({Severity::error, "cluster",
                        masters + "; " + std::to_string(slots - covered) +
                            " slots have none, and whatever lock is in them cannot be taken"});
  } else {
    findings.push_back({Severity::ok, "cluster", masters + " have all slots"});
  }
  std::string alone;
  std::size_t fewest = slots;
  for (const auto& [master, count] : replicas) {
    fewest = std::min(fewest, count);
    if (count == 0) alone += (alone.empty() ? "" : ", ") + master;
  }
  if (!alone.empty()) {
    findings.push_back({Severity::warning, "failover", "no replica that could take its place: " + alone});
  } else if (options.replicas_ack < fewest) {
    findings.push_back({Severity::note, "failover",
                        "every master has replicas; a failover may lose the latest locks, which replicas_ack=" +
                            std::to_string(fewest) + " makes less likely, and fencing tokens harmless"});
  } else {
    findings.push_back({Severity::ok, "failover", "every master has replicas, which acknowledge locks"});
  }
  if (!node_timeout) {
    findings.push_back(
        {Severity::note, "node-timeout", "cluster-node-timeout cannot be checked without the right to run CONFIG GET"});
    return findings;
  }
  const std::string down_after = "a master counts as down when it was silent for " + util::to_text(*node_timeout);
  const bool longer = *node_timeout > options.lease;
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
      self->next();
    });
  }

  void conclude() {
    Server* const server = masters_.empty() ? nullptr : cluster_.master_at(masters_.front());
    if (server == nullptr) return judge({});
    const TimePoint deadline = saturating_add(cluster_.executor().now(), cluster_.options().response_timeout);
    (void)server->commands().request({"CONFIG", "GET", "cluster-node-timeout"}, deadline,
                                     [self = shared_from_this()](const Result<Reply>& reply, TimePoint) {
                                       const auto ms =
                                           reply.ok() ? number_in(reply.value(), "cluster-node-timeout") : std::nullopt;
                                       self->judge(ms ? std::optional(std::chrono::milliseconds(*ms)) : std::nullopt);
                                     });
  }

  void judge(std::optional<std::chrono::milliseconds> node_timeout) {
    for (Finding& finding : judge_cluster(cluster_.ranges(), cluster_.options(), node_timeout)) {
      findings_.push_back(std::move(finding));
    }
    done_(std::move(findings_));
  }

  Cluster& cluster_;
  const Backend::Handler<std::vector<Finding>> done_;
  std::vector<common::Host> masters_;
  std::size_t at_ = 0;
  std::vector<Finding> findings_;
};

}  // namespace

void diagnose(Cluster& cluster, Backend::Handler<std::vector<Finding>> done) {
  std::make_shared<ClusterDiagnosis>(cluster, std::move(done))->start();
}

}  // namespace dlock::redis
