#include "bench/targets/catalog.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string_view>
#include <utility>

#include "bench/targets/embedded/target.hpp"
#include "bench/targets/service_target.hpp"
#include "torture/rig/url_text.hpp"
#if DLOCK_BENCH_WITH_REDIS
#include "bench/targets/redis/target.hpp"
#endif
#if DLOCK_BENCH_WITH_ZOOKEEPER
#include "bench/targets/zookeeper/target.hpp"
#endif
#if DLOCK_BENCH_WITH_ETCD
#include "bench/targets/etcd/target.hpp"
#endif
#if DLOCK_BENCH_WITH_POSTGRES
#include "bench/targets/postgres/target.hpp"
#endif

namespace dlock::bench {

namespace {

using Targets = std::vector<std::unique_ptr<ServiceTarget>>;

Targets of_strategies(const rig::UrlText& url, const std::vector<std::string>& all,
                      std::unique_ptr<ServiceTarget> (*make)(const rig::UrlText& url, const std::string& strategy)) {
  Targets targets;
  if (const auto wanted = url.parameter("strategy")) {
    targets.push_back(make(url, *wanted));  // one that does not exist is refused when it is connected to
  } else {
    for (const std::string& each : all) targets.push_back(make(url, each));
  }
  return targets;
}

Targets targets_of(const rig::UrlText& url) {
  const std::string& scheme = url.original().scheme();
  if (scheme == "memory") return of_strategies(url, memory_strategies(), &make_memory_target);
  if (scheme == "file") {
    Targets targets;
    targets.push_back(make_file_target(url));
    return targets;
  }
#if DLOCK_BENCH_WITH_REDIS
  if (scheme.starts_with("redis")) return of_strategies(url, redis_strategies(), &make_redis_target);
#endif
#if DLOCK_BENCH_WITH_ZOOKEEPER
  if (scheme == "zookeeper") return of_strategies(url, zookeeper_strategies(), &make_zookeeper_target);
#endif
#if DLOCK_BENCH_WITH_ETCD
  if (scheme == "etcd" || scheme == "etcds") {
    Targets targets;
    targets.push_back(make_etcd_target(url));
    return targets;
  }
#endif
#if DLOCK_BENCH_WITH_POSTGRES
  if (scheme == "postgresql" || scheme == "postgres") {
    return of_strategies(url, postgres_strategies(), &make_postgres_target);
  }
#endif
  throw Error(errc::invalid_argument, "URL: no benchmark for scheme \"" + scheme + "\"");
}

// A try waits for a connection and an answer, and giving up for the end of it.
void try_a_lock(const Target& target, std::chrono::seconds limit) {
  constexpr int waits = 3;
  rig::UrlText url(target.url(1));
  const std::string share = std::to_string(std::chrono::milliseconds(limit).count() / waits) + "ms";
  for (const char* each : {"connect_timeout", "response_timeout", "close_timeout"}) url.set(each, share);
  const Client client = dlock::connect(url.text());
  DistributedLock lock = client.make_lock(std::string(lock_names) + "reachable");
  auto lease = lock.try_acquire();
  if (!lease) throw Error(errc::protocol, client.url() + ": a lock with a new name is already held");
  (void)lease->release();  // a lease that was lost meanwhile shows in the measurements
}

void clean_up_after_failure(Target& target) {
  try {
    target.clean_up();
  } catch (const std::exception&) {
    // What went wrong before says more.
  }
}

}  // namespace

std::vector<std::unique_ptr<Target>> make_targets(const std::string& url, std::chrono::seconds limit) {
  Targets found = targets_of(rig::UrlText(url));
  std::vector<std::unique_ptr<Target>> targets;
  // The strategies are of one service.
  try_a_lock(*found.front(), limit);
  try {
    for (const auto& each : found) each->prepare();
  } catch (...) {
    for (const auto& each : found) clean_up_after_failure(*each);
    throw;
  }
  for (auto& each : found) targets.push_back(std::move(each));
  return targets;
}

std::vector<std::string> usual_urls() {
  std::vector<std::string> urls;
  if (const char* given = std::getenv("DLOCK_URL"); given != nullptr && *given != '\0') urls.emplace_back(given);
  const std::vector<std::pair<std::string, std::string>> usual = {
      {"memory", "memory://"},        {"file", "file://" + std::filesystem::temp_directory_path().string()},
      {"redis", "redis://localhost"}, {"zookeeper", "zookeeper://localhost"},
      {"etcd", "etcd://localhost"},   {"postgresql", "postgresql://localhost"}};
  const std::vector<std::string> built = backends();
  for (const auto& [scheme, url] : usual) {
    const bool is_built = std::find(built.begin(), built.end(), scheme) != built.end();
    if (is_built && std::find(urls.begin(), urls.end(), url) == urls.end()) urls.push_back(url);
  }
  return urls;
}

}  // namespace dlock::bench
