#include "backends/zookeeper/strategies/contentions.hpp"

#include <utility>

#include "backends/zookeeper/strategies/ephemeral_contention.hpp"
#include "backends/zookeeper/strategies/queue_contention.hpp"
#include "util/names.hpp"

namespace dlock::zookeeper {

namespace {

constexpr std::size_t max_warned_of = 1000;

}  // namespace

Contentions::Contentions(BackendHost& host, const Options& options, Requests& requests, Watches& watches,
                         Parents& parents, Removals& removals, Holds& holds)
    : SessionWaiters(host.executor(), options.response_timeout),
      host_(host),
      options_(options),
      requests_(requests),
      watches_(watches),
      parents_(parents),
      removals_(removals),
      holds_(holds) {}

std::unique_ptr<Contention> Contentions::contend(const LockRequest& request, GrantSink& sink) {
  ++contended_[request.name];
  const auto started = [](auto contention) {
    contention->start();
    return contention;
  };
  if (options_.strategy == Strategy::ephemeral) {
    return started(std::make_unique<EphemeralContention>(*this, request, sink));
  }
  return started(std::make_unique<QueueContention>(*this, request, sink));
}

void Contentions::forget(const std::string& name) {
  const auto found = contended_.find(name);
  if (--found->second == 0) contended_.erase(found);
}

Failure Contentions::session_problem() const {
  Failure why = requests_.session().problem();
  return why.code ? why : Failure{errc::unavailable, "there is no connection to ZooKeeper yet"};
}

void Contentions::warn_of_unknown_child(const std::string& name, const std::string& lock_path,
                                        const std::string& child) {
  if (warned_of_.size() >= max_warned_of || !warned_of_.insert(lock_path).second) return;
  host_.warn({.name = name,
              .reason = {errc::protocol, "node " + util::quoted(child) + " below " + util::quoted(lock_path) +
                                             " belongs to no kind of lock that dlock knows; dlock ignores it"}});
}

}  // namespace dlock::zookeeper
