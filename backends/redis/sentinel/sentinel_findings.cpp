#include "backends/redis/sentinel/sentinel_findings.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include <dlock/duration.hpp>

#include "backends/redis/administration/diagnosis.hpp"
#include "backends/redis/connection/server_info.hpp"

namespace dlock::redis {

using Severity = Finding::Severity;

namespace {

Finding judge_replicas(std::uint32_t replicas, const Options& options, const Reply& config) {
  if (replicas == 0) return {Severity::error, "failover", "no replica that could take the master's place"};
  const std::string all = std::to_string(replicas);
  if (options.sentinel->all_replicas) {
    return {Severity::ok, "failover",
            "locks are granted when all replicas (" + all + ") have acknowledged them, so that a failover keeps them"};
  }
  const auto min_replicas = number_in(config, "min-replicas-to-write");
  if (!min_replicas)
    return {Severity::note, "failover", "min-replicas-to-write cannot be checked without the right to run CONFIG GET"};
  if (*min_replicas < replicas) {
    return {Severity::warning, "failover",
            "min-replicas-to-write is " + std::to_string(*min_replicas) + ", with " + all +
                " replicas: a replaced master grants locks until it learns of the failover; set it to " + all +
                ", with min-replicas-max-lag at 2, or use replicas_ack=all"};
  }
  return {Severity::ok, "failover",
          "a master whose replicas have not answered for " +
              std::to_string(number_in(config, "min-replicas-max-lag").value_or(0)) +
              " seconds grants no locks (min-replicas-to-write, min-replicas-max-lag)"};
}

// Of connections to the master, if it is known, and of those to the sentinels unless both use TLS.
std::vector<Finding> judge_all_encryption(Options options, const std::optional<common::Host>& master) {
  std::vector<Finding> findings;
  if (master) {
    options.host = *master;
    findings.push_back(judge_encryption(options));
  }
  if (options.tls && options.sentinel->tls) return findings;
  options.tls = options.sentinel->tls;
  options.host = options.sentinel->hosts.front();
  for (const common::Host& host : options.sentinel->hosts) {
    if (!host.is_this_machine()) options.host = host;
  }
  findings.push_back(judge_encryption(options));
  findings.back().message.insert(0, "to the sentinels: ");
  return findings;
}

}  // namespace

std::vector<Finding> judge_sentinels(const std::vector<SentinelReply>& replies, const Options& options,
                                     const std::optional<common::Host>& master, const Reply& config) {
  std::string silent;
  std::set<std::string> masters;
  std::vector<SentinelReply> answers;
  std::uint32_t quorum = 0;
  for (const SentinelReply& reply : replies) {
    if (reply.problem) {
      silent += (silent.empty() ? "; " : ", ") + reply.sentinel.to_string() + ": " + reply.problem->detail;
      continue;
    }
    answers.push_back(reply);
    quorum = std::max(quorum, reply.quorum);
    masters.insert(reply.master->to_string());
  }
  Finding finding = {
      Severity::warning, "sentinels",
      std::to_string(answers.size()) + " of " + std::to_string(replies.size()) + " sentinels answer" + silent};
  if (answers.size() <= replies.size() / 2 || answers.size() < quorum) {
    finding.severity = Severity::error;
    finding.message += ": no failover can happen";
  } else if (masters.size() > 1) {
    finding.message += "; they disagree about the master at the moment";
  } else {
    finding.message += "; the master of " + options.sentinel->service + " is " + *masters.begin() + ", quorum " +
                       std::to_string(quorum);
    if (replies.size() < 3) {
      finding.message += "; with fewer than three, none of them may fail";
    } else if (silent.empty()) {
      finding.severity = Severity::ok;
    }
  }
  std::vector<Finding> findings = judge_all_encryption(options, master);
  findings.push_back(std::move(finding));
  if (answers.empty()) return findings;
  findings.push_back(judge_replicas(answers.front().replicas, options, config));
  findings.push_back(judge_down_after("down-after", "down-after-milliseconds", answers.front().down_after, options));
  return findings;
}

void diagnose(CommandClient& commands, const std::shared_ptr<Sentinels>& sentinels,
              Backend::Handler<std::vector<Finding>> done) {
  diagnose(commands, [&commands, sentinels, done = std::move(done)](const Result<std::vector<Finding>>& server) {
    if (!server.ok()) return done(server);
    const Options& options = commands.options();
    (void)commands.request(
        {"CONFIG", "GET", "min-replicas-*"}, saturating_add(commands.executor().now(), options.response_timeout),
        [&options, sentinels, done, findings = server.value()](const Result<Reply>& config, TimePoint) {
          sentinels->survey([=, &options](const std::vector<SentinelReply>& replies) {
            std::vector<Finding> all = findings;
            const auto more =
                judge_sentinels(replies, options, sentinels->master(), config.ok() ? config.value() : Reply{});
            all.insert(all.end(), more.begin(), more.end());
            done(std::move(all));
          });
        });
  });
}

}  // namespace dlock::redis
