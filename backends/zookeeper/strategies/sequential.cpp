#include "backends/zookeeper/strategies/sequential.hpp"

#include <utility>

#include "backends/common/for_each_still_in.hpp"
#include "backends/zookeeper/strategies/queue_contention.hpp"
#include "util/names.hpp"

namespace dlock::zookeeper {

namespace {

constexpr std::size_t max_warned_of = 1000;

}  // namespace

Sequential::Sequential(BackendHost& host, const Options& options, Requests& requests, Watches& watches,
                       Parents& parents, Removals& tombstones, Holds& holds)
    : host_(host),
      options_(options),
      requests_(requests),
      watches_(watches),
      parents_(parents),
      tombstones_(tombstones),
      holds_(holds) {}

Sequential::~Sequential() = default;

std::unique_ptr<Contention> Sequential::contend(const LockRequest& request, GrantSink& sink) {
  const std::uint64_t id = ++next_id_;
  auto contention = std::make_unique<QueueContention>(*this, id, request, sink);
  contentions_.emplace(id, contention.get());
  ++contended_[request.name];
  contention->start();
  return contention;
}

void Sequential::forget(std::uint64_t id, const std::string& name) {
  contentions_.erase(id);
  const auto found = contended_.find(name);
  if (--found->second == 0) contended_.erase(found);
}

void Sequential::session_ready() {
  trouble_ = {};
  common::for_each_still_in(contentions_, [](auto, QueueContention* each) { each->session_ready(); });
}

void Sequential::session_suspended(const Failure& why) {
  trouble_ = why;
  common::for_each_still_in(contentions_, [&why](auto, QueueContention* each) { each->session_suspended(why); });
}

void Sequential::session_lost(const Failure& why) {
  trouble_ = {errc::unavailable, why.detail};
  common::for_each_still_in(contentions_, [&why](auto, QueueContention* each) { each->session_lost(why); });
}

void Sequential::warn_of_unknown_child(const std::string& name, const std::string& lock_path,
                                       const std::string& child) {
  if (warned_of_.size() >= max_warned_of || !warned_of_.insert(lock_path).second) return;
  host_.warn({.name = name,
              .reason = {errc::protocol, "node " + util::quoted(child) + " below " + util::quoted(lock_path) +
                                             " belongs to no kind of lock that dlock knows; dlock ignores it"}});
}

}  // namespace dlock::zookeeper
