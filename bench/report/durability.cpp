#include "bench/report/durability.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace dlock::bench {

namespace {

std::string_view setting_of(const ServiceInfo& service, std::string_view name) {
  const auto found = std::find_if(service.settings.begin(), service.settings.end(),
                                  [&](const auto& each) { return each.first == name; });
  return found == service.settings.end() ? std::string_view() : std::string_view(found->second);
}

bool has_parameter(const ServiceInfo& service, std::string_view parameter) {
  return service.url.find(parameter) != std::string::npos;
}

Durability of_redis(const ServiceInfo& service) {
  const auto appends = setting_of(service, "appendonly");
  if (appends == "no") return Durability::forgotten;
  if (appends != "yes") return Durability::unknown;
  const auto syncs = setting_of(service, "appendfsync");
  if (syncs == "always") return Durability::everything;
  return syncs.empty() ? Durability::unknown : Durability::last_moments;
}

Durability of_zookeeper(const ServiceInfo& service) {
  const auto syncs = setting_of(service, "forceSync");
  if (syncs == "yes") return Durability::everything;
  return syncs == "no" ? Durability::last_moments : Durability::unknown;
}

// dlock's own statements are committed synchronously, whatever synchronous_commit is, unless the URL says otherwise.
// PostgreSQL keeps these locks with a connection, or in a table that it does not log.
bool end_with_the_server(const ServiceInfo& service) {
  return service.strategy == "advisory" || service.strategy == "for-update" ||
         has_parameter(service, "durability=unlogged");
}

Durability of_postgresql(const ServiceInfo& service) {
  if (end_with_the_server(service)) return Durability::forgotten;
  const auto syncs = setting_of(service, "fsync");
  if (has_parameter(service, "durability=async") || syncs == "off") return Durability::last_moments;
  return syncs == "on" ? Durability::everything : Durability::unknown;
}

}  // namespace

// ZooKeeper and etcd: a majority of the servers has a grant, and one of them takes over.
Durability failover_of(const ServiceInfo& service) {
  if (service.backend == "zookeeper" || service.backend == "etcd") return Durability::everything;
  if (service.backend == "postgresql") {
    return end_with_the_server(service) ? Durability::forgotten : Durability::last_moments;
  }
  if (!service.backend.starts_with("redis")) return Durability::unknown;
  const bool all_have_it =
      service.backend.find("sentinel") != std::string::npos && has_parameter(service, "replicas_ack=all");
  return all_have_it ? Durability::everything : Durability::last_moments;
}

const char* lost_text(Durability durability) noexcept {
  switch (durability) {
    case Durability::forgotten:
      return "all locks";
    case Durability::last_moments:
      return "last grants";
    case Durability::everything:
      return "nothing";
    case Durability::unknown:
      break;
  }
  return "not known";
}

Durability durability_of(const ServiceInfo& service) {
  if (service.backend.starts_with("redis")) return of_redis(service);
  if (service.backend == "zookeeper") return of_zookeeper(service);
  if (service.backend == "etcd") return Durability::everything;  // whoever runs it
  if (service.backend == "postgresql") return of_postgresql(service);
  return Durability::unknown;
}

const char* to_string(Durability durability) noexcept {
  switch (durability) {
    case Durability::forgotten:
      return "a crash of the server may forget all locks";
    case Durability::last_moments:
      return "a crash of the server's machine may forget the last grants";
    case Durability::everything:
      return "grants are on disk before they are answered";
    case Durability::unknown:
      break;
  }
  return "what a crash forgets is not known";
}

bool between_machines(const ServiceInfo& service) noexcept {
  return service.backend != "memory" && service.backend != "file";
}

}  // namespace dlock::bench
