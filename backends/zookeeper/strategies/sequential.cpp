#include "backends/zookeeper/strategies/sequential.hpp"

#include <algorithm>
#include <utility>

#include "backends/zookeeper/strategies/queue_contention.hpp"
#include "util/names.hpp"

namespace dlock::zookeeper {

namespace {

constexpr std::size_t max_warned_of = 1000;

}  // namespace

Sequential::Sequential(BackendHost& host, const Options& options, Requests& requests, Watches& watches,
                       Parents& parents, Tombstones& tombstones, Holds& holds)
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

// In the order of their acquires, so that they queue in it. They come and go while they are told something.
template <class F>
void Sequential::for_each(F&& f) {
  std::vector<std::uint64_t> ids;
  ids.reserve(contentions_.size());
  for (const auto& [id, contention] : contentions_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const std::uint64_t id : ids) {
    const auto found = contentions_.find(id);
    if (found != contentions_.end()) f(*found->second);
  }
}

void Sequential::session_ready() {
  trouble_ = {};
  for_each([](QueueContention& contention) { contention.session_ready(); });
}

void Sequential::session_suspended(const Failure& why) {
  trouble_ = why;
  for_each([&why](QueueContention& contention) { contention.session_suspended(why); });
}

void Sequential::session_lost(const Failure& why) {
  trouble_ = {errc::unavailable, why.detail};
  for_each([&why](QueueContention& contention) { contention.session_lost(why); });
}

void Sequential::warn_of_unknown_child(const std::string& name, const std::string& lock_path,
                                       const std::string& child) {
  if (warned_of_.size() >= max_warned_of || !warned_of_.insert(lock_path).second) return;
  host_.warn({.name = name,
              .reason = {errc::protocol, "node " + util::quoted(child) + " below " + util::quoted(lock_path) +
                                             " is of no lock that dlock knows; it is taken for nothing"}});
}

}  // namespace dlock::zookeeper
