#include "bench/targets/catalog.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string_view>
#include <utility>

#include "bench/targets/service_target.hpp"
#include "torture/rig/url_text.hpp"

namespace dlock::bench {

namespace {

struct Service {
  std::vector<std::string_view> schemes;
  std::vector<std::string> strategies;  // {""} if the service has none
  std::string usual_url;                // on this machine
  std::unique_ptr<ServiceTarget> (*make)(const rig::UrlText& url, const std::string& strategy);
};

const std::vector<Service>& services() {
  static const std::vector<Service> all = {
    {{"memory"}, {"queue", "watch", "poll"}, "memory://", &make_memory_target},
    {{"file"}, {""}, "file://" + std::filesystem::temp_directory_path().string(), &make_file_target},
#if DLOCK_BENCH_WITH_REDIS
    {{"redis", "rediss", "redis-sentinel", "rediss-sentinel", "redis-cluster", "rediss-cluster"},
     {"queue", "broadcast", "poll"},
     "redis://localhost",
     &make_redis_target},
#endif
#if DLOCK_BENCH_WITH_ZOOKEEPER
    {{"zookeeper"}, {"sequential", "sequential-herd", "ephemeral"}, "zookeeper://localhost", &make_zookeeper_target},
#endif
#if DLOCK_BENCH_WITH_ETCD
    {{"etcd", "etcds"}, {""}, "etcd://localhost", &make_etcd_target},
#endif
#if DLOCK_BENCH_WITH_POSTGRES
    {{"postgresql", "postgres"},
     {"table", "optimistic", "for-update", "advisory"},
     "postgresql://localhost",
     &make_postgres_target},
#endif
#if DLOCK_BENCH_WITH_MYSQL
    {{"mysql", "mariadb"}, {"table", "optimistic", "for-update", "named"}, "mysql://localhost", &make_mysql_target},
#endif
  };
  return all;
}

using Targets = std::vector<std::unique_ptr<ServiceTarget>>;

Targets targets_of(const rig::UrlText& url) {
  const std::string& scheme = url.original().scheme();
  for (const Service& service : services()) {
    if (std::find(service.schemes.begin(), service.schemes.end(), scheme) == service.schemes.end()) continue;
    // The client refuses an unknown strategy when it connects.
    const auto wanted = service.strategies.size() > 1 ? url.parameter("strategy") : std::nullopt;
    Targets targets;
    for (const std::string& each : wanted ? std::vector{*wanted} : service.strategies) {
      targets.push_back(service.make(url, each));
    }
    return targets;
  }
  throw Error(errc::invalid_argument, "URL: no benchmark for scheme \"" + scheme + "\"");
}

// A try waits for a connection and an answer, and at its end for giving up.
void try_a_lock(const Target& target, std::chrono::seconds limit) {
  rig::UrlText url(target.url(1));
  // Of the five parts of the limit, the try and the release take two each. A connection fails before the try ends,
  // because only that failure names the server.
  const auto parts = [limit](int count) {
    return std::to_string(count * std::chrono::milliseconds(limit).count() / 5) + "ms";
  };
  url.set("response_timeout", parts(2));
  url.set("connect_timeout", parts(1));
  url.set("close_timeout", parts(1));
  const Client client = dlock::connect(url.text());
  DistributedLock lock = client.make_lock(std::string(lock_names) + "reachable");
  auto lease = lock.try_acquire();
  if (!lease) throw Error(errc::protocol, client.url() + ": a lock with a new name is already held");
  (void)lease->release();  // if the lease was lost meanwhile, the measurements show it
}

void clean_up_after_failure(Target& target) {
  try {
    target.clean_up();
  } catch (const std::exception&) {
    // The first error is more specific.
  }
}

}  // namespace

std::vector<std::unique_ptr<Target>> make_targets(const std::string& url, std::chrono::seconds limit) {
  Targets found = targets_of(rig::UrlText(url));
  // All strategies belong to one service.
  try_a_lock(*found.front(), limit);
  try {
    for (const auto& each : found) each->prepare();
  } catch (...) {
    for (const auto& each : found) clean_up_after_failure(*each);
    throw;
  }
  return {std::make_move_iterator(found.begin()), std::make_move_iterator(found.end())};
}

std::vector<std::string> usual_urls() {
  std::vector<std::string> urls;
  if (const char* given = std::getenv("DLOCK_URL"); given != nullptr && *given != '\0') urls.emplace_back(given);
  for (const Service& each : services()) {
    if (std::find(urls.begin(), urls.end(), each.usual_url) == urls.end()) urls.push_back(each.usual_url);
  }
  return urls;
}

}  // namespace dlock::bench
