#include "bench/targets/redis/target.hpp"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <optional>

#include "backends/redis/requests/keys.hpp"
#include "bench/targets/own_name.hpp"
#include "bench/targets/redis/by_hand.hpp"
#include "bench/targets/redis/connection.hpp"
#include "bench/targets/redis/info.hpp"
#include "bench/targets/redis/masters.hpp"

namespace dlock::bench {

namespace {

// Of the connections that the server takes, those left for clients, and for other connections.
constexpr std::size_t spare_connections = 64;

// As a pattern that matches nothing else.
std::string quoted_pattern(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("*?[]^-\\").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

class RedisTarget final : public ServiceTarget {
 public:
  RedisTarget(const rig::UrlText& given, const std::string& strategy);

  void prepare() override;
  [[nodiscard]] std::size_t most_floors() const override { return most_floors_; }
  [[nodiscard]] bool has_floor() const override { return !by_tls(); }
  [[nodiscard]] std::unique_ptr<Floor> floor_at(const rig::UrlText& url, const std::string& name) override;
  [[nodiscard]] std::optional<Operations> operations() override;
  void clean_up() override;

 private:
  [[nodiscard]] rig::UrlText url_for(std::size_t locks) const override;
  // hiredis alone has no TLS.
  [[nodiscard]] bool by_tls() const { return given().original().scheme().starts_with("rediss"); }
  void unlink_matching(RedisConnection& connection, const std::string& pattern) const;

  std::string own_name_ = own_name();
  bool own_prefix_;
  std::string prefix_;
  std::string floors_;  // what the keys of floors begin with
  std::size_t most_floors_ = 0;
  std::vector<RedisConnection> statistics_;  // one for each master
};

// "redis", "redis-cluster", "redis-sentinel"
std::string backend_of(const rig::UrlText& url) {
  std::string scheme = url.original().scheme();
  if (scheme.starts_with("rediss")) scheme.erase(sizeof("redis") - 1, 1);
  return scheme;
}

RedisTarget::RedisTarget(const rig::UrlText& given, const std::string& strategy)
    : ServiceTarget(given, backend_of(given), strategy) {
  const auto prefix = given.parameter("prefix");
  own_prefix_ = !prefix;
  prefix_ = prefix.value_or(own_name_ + ":");
  floors_ = prefix_ + "floor:" + own_name_ + ":";
}

rig::UrlText RedisTarget::url_for(std::size_t /*locks*/) const {
  rig::UrlText url = given();
  url.set("strategy", info().strategy);
  url.set("prefix", prefix_);
  return url;
}

void RedisTarget::prepare() {
  if (by_tls()) return;
  const std::vector<rig::UrlText> masters = redis_masters(given());
  // Whatever the user has no right to is left out.
  const auto ask = [&](std::initializer_list<std::string_view> words) -> std::string {
    try {
      return RedisConnection(masters.front()).text(words);
    } catch (const std::exception&) {
      return {};
    }
  };
  const auto configured = [&](const char* name, const char* when_empty) -> std::string {
    try {
      const RedisReply reply = RedisConnection(masters.front()).call({"CONFIG", "GET", name});
      if (reply->elements != 2) return {};
      return reply->element[1]->len != 0 ? reply->element[1]->str : when_empty;
    } catch (const std::exception&) {
      return {};
    }
  };
  add_setting("version", info_field(ask({"INFO", "server"}), "redis_version"));
  add_setting("appendonly", configured("appendonly", ""));
  add_setting("appendfsync", configured("appendfsync", ""));
  add_setting("save", configured("save", "never"));
  if (info().backend != "redis") {
    add_setting("masters", std::to_string(masters.size()));
    add_setting("replicas of each", info_field(ask({"INFO", "replication"}), "connected_slaves"));
  }
  std::size_t most = 0;
  const std::string limit = info_field(ask({"INFO", "clients"}), "maxclients");
  (void)std::from_chars(limit.data(), limit.data() + limit.size(), most);  // unknown: any number is tried
  if (most != 0) most_floors_ = std::max<std::size_t>(most, spare_connections + 1) - spare_connections;
}

std::unique_ptr<Floor> RedisTarget::floor_at(const rig::UrlText& url, const std::string& name) {
  const std::string key = floors_ + name;
  return std::make_unique<RedisByHand>(redis_master_of(url, key), key);
}

std::optional<Operations> RedisTarget::operations() {
  if (by_tls()) return std::nullopt;
  try {
    if (statistics_.empty()) {
      for (const rig::UrlText& each : redis_masters(given())) statistics_.emplace_back(each);
    }
    Operations result{};
    double published = 0;
    for (RedisConnection& each : statistics_) {
      const std::string text = each.text({"INFO", "commandstats"});
      result.carried_out += client_requests(text);
      published += command_calls(text, "publish") + command_calls(text, "spublish");
    }
    // A release publishes once, in the queue for one client: the next one's. How many clients hear what is for all who
    // watch a lock, the server does not count; who polls hears nothing.
    if (info().strategy == "queue") result.wake_ups = published;
    if (info().strategy == "poll") result.wake_ups = 0;
    return result;
  } catch (const std::exception&) {
    statistics_.clear();  // no right to ask, or a connection that broke
    return std::nullopt;
  }
}

// Where the user has a prefix, what is below it need not be ours, except the names that scenarios lock, and floors.
void RedisTarget::clean_up() {
  std::vector<std::string> starts = {floors_};
  for (const LockKind each : {LockKind::lock, LockKind::read_write, LockKind::semaphore}) {
    starts.push_back(redis::lock_key(prefix_, own_prefix_ ? "" : lock_names, each));
  }
  for (const rig::UrlText& master : redis_masters(given())) {
    RedisConnection connection(master);
    for (const std::string& ours : starts) {
      const std::string pattern = quoted_pattern(ours) + "*";
      unlink_matching(connection, pattern);
      unlink_matching(connection, "{" + pattern);
    }
  }
}

void RedisTarget::unlink_matching(RedisConnection& connection, const std::string& pattern) const {
  std::string cursor = "0";
  do {
    const RedisReply reply = connection.call({"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"});
    if (reply->elements != 2) throw std::runtime_error("Redis: unexpected answer to SCAN");
    cursor = reply->element[0]->str;
    const redisReply& keys = *reply->element[1];
    const std::size_t at_once = on_cluster(given()) ? 1 : 100;  // there, those of one command are in one slot
    for (std::size_t i = 0; i < keys.elements; i += at_once) {
      std::vector<std::string_view> words = {"UNLINK"};
      for (std::size_t k = i; k < std::min(i + at_once, keys.elements); ++k) {
        words.emplace_back(keys.element[k]->str, keys.element[k]->len);
      }
      (void)connection.call(words);
    }
  } while (cursor != "0");
}

}  // namespace

const std::vector<std::string>& redis_strategies() {
  static const std::vector<std::string> all = {"queue", "broadcast", "poll"};
  return all;
}

std::unique_ptr<ServiceTarget> make_redis_target(const rig::UrlText& url, const std::string& strategy) {
  return std::make_unique<RedisTarget>(url, strategy);
}

}  // namespace dlock::bench
