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

Finding judge_replies(const std::vector<SentinelReply>& replies, const Options& options) {
  std::string silent;
  std::set<std::string> masters;
  std::size_t answers = 0;
  std::uint32_t quorum = 0;
  for (const SentinelReply& reply : replies) {
    if (reply.problem) {
      silent += (silent.empty() ? "; " : ", ") + reply.sentinel.to_string() + ": " + reply.problem->detail;
      continue;
    }
    ++answers;
    quorum = std::max(quorum, reply.quorum);
    masters.insert(reply.master->to_string());
  }
  const std::string count =
      std::to_string(answers) + " of " + std::to_string(replies.size()) + " sentinels answer" + silent;
  if (answers <= replies.size() / 2 || answers < quorum)
    return {Severity::error, "sentinels", count + ": no failover can happen"};
  if (masters.size() > 1)
    return {Severity::warning, "sentinels", count + "; they disagree about the master at the moment"};
  const std::string where =
      "; the master of " + options.sentinel->service + " is " + *masters.begin() + ", quorum " + std::to_string(quorum);
  if (replies.size() < 3)
    return {Severity::warning, "sentinels", count + where + "; with fewer than three, none of them may fail"};
  return {answers < replies.size() ? Severity::warning : Severity::ok, "sentinels", count + where};
}

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

// Of connections to the master, and of those to the sentinels if they differ.
std::vector<Finding> judge_all_encryption(const Options& options, const std::optional<common::Host>& master) {
  std::vector<Finding> findings;
  Options server = options;
  server.sentinel.reset();
  if (master) {
    server.host = *master;
    findings.push_back(judge_encryption(server));
  }
  if (options.sentinel->tls.has_value() == options.tls.has_value() && (options.tls || !master)) return findings;
  server.tls = options.sentinel->tls;
  const auto& hosts = options.sentinel->hosts;
  const auto elsewhere =
      std::find_if_not(hosts.begin(), hosts.end(), [](const auto& host) { return host.is_this_machine(); });
  server.host = elsewhere == hosts.end() ? hosts.front() : *elsewhere;
  findings.push_back(judge_encryption(server));
  findings.back().message.insert(0, "to the sentinels: ");
  return findings;
}

}  // namespace

std::vector<Finding> judge_sentinels(const std::vector<SentinelReply>& replies, const Options& options,
                                     const Reply& config) {
  std::vector<Finding> findings = {judge_replies(replies, options)};
  const auto found = std::find_if(replies.begin(), replies.end(), [](const auto& each) { return !each.problem; });
  if (found == replies.end()) return findings;
  findings.push_back(judge_replicas(found->replicas, options, config));
  findings.push_back(judge_down_after("down-after", "down-after-milliseconds", found->down_after, options));
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
            for (const auto& part : {judge_all_encryption(options, sentinels->master()),
                                     judge_sentinels(replies, options, config.ok() ? config.value() : Reply{})}) {
              all.insert(all.end(), part.begin(), part.end());
            }
            done(std::move(all));
          });
        });
  });
}

}  // namespace dlock::redis
