#include "bench/targets/redis/masters.hpp"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "backends/redis/hash_slot.hpp"
#include "bench/targets/redis/connection.hpp"

namespace dlock::bench {

namespace {

struct SlotRange {
  long long first;
  long long last;
  std::string master;  // "name:port"
};

std::string shown(std::string name, long long port) {
  if (name.find(':') != std::string::npos) name = "[" + name + "]";
  return name + ":" + std::to_string(port);
}

rig::UrlText at(rig::UrlText url, std::string host) {
  url.set_hosts(std::move(host));
  return url;
}

// What the first of the URL's hosts says that can be asked.
template <class Answer>
Answer first_answer(const rig::UrlText& url, std::uint16_t usual_port,
                    Answer (*ask)(const rig::UrlText& url, const rig::HostPort&)) {
  std::string failures;
  for (const rig::HostPort& each : url.hosts({.name = "localhost", .port = usual_port})) {
    try {
      return ask(url, each);
    } catch (const std::runtime_error& error) {
      failures += (failures.empty() ? "" : "; ") + shown(each.name, each.port) + ": " + error.what();
    }
  }
  throw std::runtime_error(failures);
}

std::string master_by_sentinel(const rig::UrlText& url, const rig::HostPort& sentinel) {
  RedisConnection connection(sentinel);
  if (const auto password = url.secret("sentinel_password")) {
    connection.log_in(url.parameter("sentinel_user").value_or(""), *password);
  }
  const std::string name = url.parameter("service_name").value_or("mymaster");
  const RedisReply reply = connection.call({"SENTINEL", "get-master-addr-by-name", name});
  if (reply->elements != 2) throw std::runtime_error("the sentinel does not know service " + name);
  return shown(reply->element[0]->str, std::stoll(reply->element[1]->str));
}

std::vector<SlotRange> slots_by_node(const rig::UrlText& url, const rig::HostPort& node) {
  RedisConnection connection(at(url, shown(node.name, node.port)));
  const RedisReply reply = connection.call({"CLUSTER", "SLOTS"});
  std::vector<SlotRange> all;
  for (std::size_t i = 0; i < reply->elements; ++i) {
    const redisReply& range = *reply->element[i];
    if (range.elements < 3 || range.element[2]->elements < 2)
      throw std::runtime_error("unexpected answer to CLUSTER SLOTS");
    const redisReply& master = *range.element[2];
    const redisReply& name = *master.element[0];
    // One that does not know its own address is the one that was asked.
    const std::string host = name.len != 0 ? std::string(name.str, name.len) : node.name;
    all.push_back({.first = range.element[0]->integer,
                   .last = range.element[1]->integer,
                   .master = shown(host, master.element[1]->integer)});
  }
  if (all.empty()) throw std::runtime_error("the cluster has no slots");
  return all;
}

std::vector<SlotRange> slots_of(const rig::UrlText& url) {
  return first_answer(url, 6379, &slots_by_node);
}

}  // namespace

bool on_cluster(const rig::UrlText& url) {
  return url.original().scheme().ends_with("-cluster");
}

std::vector<rig::UrlText> redis_masters(const rig::UrlText& url) {
  if (!on_cluster(url)) return {redis_master_of(url, {})};
  std::vector<std::string> names;
  for (const SlotRange& each : slots_of(url)) names.push_back(each.master);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<rig::UrlText> all;
  all.reserve(names.size());
  for (std::string& each : names) all.push_back(at(url, std::move(each)));
  return all;
}

rig::UrlText redis_master_of(const rig::UrlText& url, std::string_view key) {
  if (url.original().scheme().ends_with("-sentinel")) {
    return at(url, first_answer(url, 26379, &master_by_sentinel));
  }
  if (!on_cluster(url)) return url;
  const long long slot = redis::slot_of(key);
  for (const SlotRange& each : slots_of(url)) {
    if (each.first <= slot && slot <= each.last) return at(url, each.master);
  }
  throw std::runtime_error("the cluster's slot " + std::to_string(slot) + " has no master");
}

}  // namespace dlock::bench
