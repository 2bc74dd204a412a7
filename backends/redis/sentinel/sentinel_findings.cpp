#include "backends/redis/sentinel/sentinel_findings.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <dlock/duration.hpp>

#include "backends/redis/administration/diagnosis.hpp"
#include "backends/redis/connection/server_info.hpp"

namespace dlock::redis {

using Severity = Finding::Severity;

namespace {

Finding judge_answers(const std::vector<Sentinels::Said>& said, const Options& options) {
  std::string silent;
  std::optional<common::Host> master;
  std::size_t answers = 0;
  bool agree = true;
  std::uint32_t quorum = 0;
  for (const Sentinels::Said& each : said) {
    if (!each.state.ok()) {
      silent += (silent.empty() ? "; " : ", ") + each.sentinel.to_string() + ": " + each.state.failure().detail;
      continue;
    }
    ++answers;
    const ServiceState& state = each.state.value();
    quorum = std::max(quorum, state.quorum);
    if (!master) master = state.master;
    agree = agree && state.master == master;
  }
  const std::string count =
      std::to_string(answers) + " of " + std::to_string(said.size()) + " sentinels answer" + silent;
  if (answers <= said.size() / 2 || answers < quorum)
    return {Severity::error, "sentinels", count + ": no failover can happen"};
  if (!agree) return {Severity::warning, "sentinels", count + "; they disagree about the master at the moment"};
  const std::string where = "; the master of " + options.sentinel->service + " is " + master->to_string() +
                            ", quorum " + std::to_string(quorum);
  if (said.size() < 3) {
    return {Severity::warning, "sentinels", count + where + "; with fewer than three, none of them may fail"};
  }
  return {answers < said.size() ? Severity::warning : Severity::ok, "sentinels", count + where};
}

Finding judge_replicas(const ServiceState& state, const Options& options, const ReplicaSettings& settings) {
  if (state.replicas == 0) return {Severity::error, "failover", "no replica that could take the master's place"};
  const std::string all = std::to_string(state.replicas);
  if (options.sentinel->all_replicas) {
    return {Severity::ok, "failover",
            "locks are granted when all replicas (" + all + ") have acknowledged them, so that a failover keeps them"};
  }
  const std::string cure = "; set it to " + all + ", with min-replicas-max-lag at 2, or use replicas_ack=all";
  const auto& min_replicas = settings.min_replicas;
  if (!min_replicas) {
    return {Severity::note, "failover", "min-replicas-to-write cannot be checked without the right to run CONFIG GET"};
  }
  if (*min_replicas < state.replicas) {
    return {Severity::warning, "failover",
            "min-replicas-to-write is " + std::to_string(*min_replicas) + ", with " + all +
                " replicas: a replaced master grants locks until it learns of the failover" + cure};
  }
  return {Severity::ok, "failover",
          "a master whose replicas have not answered for " + std::to_string(settings.max_lag.value_or(0)) +
              " seconds grants no locks (min-replicas-to-write, min-replicas-max-lag)"};
}

}  // namespace

std::vector<Finding> judge_sentinels(const std::vector<Sentinels::Said>& said, const Options& options,
                                     const ReplicaSettings& settings) {
  std::vector<Finding> findings = {judge_answers(said, options)};
  const auto found = std::find_if(said.begin(), said.end(), [](const auto& each) { return each.state.ok(); });
  if (found == said.end()) return findings;
  const ServiceState& state = found->state.value();
  findings.push_back(judge_replicas(state, options, settings));
  findings.push_back(judge_down_after("down-after", "down-after-milliseconds", state.down_after, options));
  return findings;
}

namespace {

// What passes to the master, and to the sentinels.
void judge_all_encryption(const Options& options, const std::optional<common::Host>& master,
                          std::vector<Finding>& findings) {
  Options server = options;
  server.sentinel.reset();
  if (master) {
    server.host = *master;
    findings.push_back(judge_encryption(server));
  }
  if (options.sentinel->tls.has_value() == options.tls.has_value() && (options.tls || !master)) return;
  server.tls = options.sentinel->tls;
  const auto& hosts = options.sentinel->hosts;
  const auto elsewhere =
      std::find_if_not(hosts.begin(), hosts.end(), [](const auto& host) { return host.is_this_machine(); });
  server.host = elsewhere == hosts.end() ? hosts.front() : *elsewhere;
  Finding finding = judge_encryption(server);
  finding.message = "to the sentinels: " + finding.message;
  findings.push_back(std::move(finding));
}

}  // namespace

void diagnose(CommandClient& commands, const std::shared_ptr<Sentinels>& sentinels,
              Backend::Handler<std::vector<Finding>> done) {
  diagnose(commands, [&commands, sentinels, done = std::move(done)](Result<std::vector<Finding>> server) {
    if (!server.ok()) return done(std::move(server));
    const TimePoint deadline = saturating_add(commands.executor().now(), commands.options().response_timeout);
    (void)commands.request(
        {"CONFIG", "GET", "min-replicas-*"}, deadline,
        [&commands, sentinels, done, findings = std::move(server.value())](const Result<Reply>& reply, TimePoint) {
          const Reply answer = reply.ok() ? reply.value() : Reply{};
          const ReplicaSettings settings{number_in(answer, "min-replicas-to-write"),
                                         number_in(answer, "min-replicas-max-lag")};
          sentinels->survey(
              [&commands, sentinels, done, findings, settings](const std::vector<Sentinels::Said>& said) mutable {
                judge_all_encryption(commands.options(), sentinels->master(), findings);
                for (Finding& finding : judge_sentinels(said, commands.options(), settings)) {
                  findings.push_back(std::move(finding));
                }
                done(std::move(findings));
              });
        });
  });
}

}  // namespace dlock::redis
