// redis://, redis-sentinel://, redis-cluster://, and their forms over TLS
#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <exception>
#include <initializer_list>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bench/targets/service_target.hpp"

namespace dlock::bench {

namespace {

// --- A blocking connection, as of a program that uses hiredis by itself ----------------------------------------------

struct FreeReply {
  void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error("Redis: " + what);
}

class Connection {
 public:
  // Does not log in. Like the other functions, throws std::runtime_error if the connection breaks, at a timeout, and
  // for errors of the server.
  explicit Connection(const rig::HostPort& host) {
    const timeval limit{.tv_sec = answer_limit.count(), .tv_usec = 0};
    context_.reset(redisConnectWithTimeout(host.name.c_str(), host.port, limit));
    if (!context_) fail("out of memory");
    if (context_->err != 0 || redisSetTimeout(context_.get(), limit) != REDIS_OK) fail(context_->errstr);
  }
  // Connects to the URL's first host and its database, and logs in as its user.
  explicit Connection(const rig::UrlText& url) : Connection(url.hosts({.name = "localhost", .port = 6379}).front()) {
    if (const auto password = url.password()) log_in(url.original().user().value_or(""), *password);
    const std::string& path = url.original().path();
    if (path.size() > 1) (void)call({"SELECT", std::string_view(path).substr(1)});
  }
  // An empty user means the default one.
  void log_in(const std::string& user, const std::string& password) {
    (void)(user.empty() ? call({"AUTH", password}) : call({"AUTH", user, password}));
  }

  Reply call(std::initializer_list<std::string_view> words) {
    begin(words);
    return receive();
  }
  // The text of a reply; empty if it has none.
  [[nodiscard]] std::string text(std::initializer_list<std::string_view> words) {
    const Reply reply = call(words);
    return reply->str != nullptr ? std::string(reply->str, reply->len) : std::string();
  }

  // The two parts of a call. Replies arrive in the order of the commands.
  void begin(std::initializer_list<std::string_view> words) {
    std::array<const char*, 8> texts{};
    std::array<std::size_t, 8> sizes{};
    std::size_t count = 0;
    for (const std::string_view each : words) {
      texts.at(count) = each.data();
      sizes.at(count++) = each.size();
    }
    if (redisAppendCommandArgv(context_.get(), static_cast<int>(count), texts.data(), sizes.data()) != REDIS_OK) {
      fail(context_->errstr);
    }
  }
  Reply receive() {
    void* received = nullptr;
    if (redisGetReply(context_.get(), &received) != REDIS_OK) fail(context_->errstr);
    Reply reply(static_cast<redisReply*>(received));
    if (reply->type == REDIS_REPLY_ERROR) fail(reply->str);
    return reply;
  }

 private:
  struct Close {
    void operator()(redisContext* context) const noexcept { redisFree(context); }
  };
  std::unique_ptr<redisContext, Close> context_;
};

// --- Which servers take writes ---------------------------------------------------------------------------------------

std::string host_text(std::string name, long long port) {
  if (name.find(':') != std::string::npos) name = "[" + name + "]";
  return name + ":" + std::to_string(port);
}

rig::UrlText at(rig::UrlText url, std::string host) {
  url.set_hosts(std::move(host));
  return url;
}

std::string master_by_sentinel(const rig::UrlText& url, const rig::HostPort& sentinel) {
  Connection connection(sentinel);
  if (const auto password = url.secret("sentinel_password")) {
    connection.log_in(url.parameter("sentinel_user").value_or(""), *password);
  }
  const std::string name = url.parameter("service_name").value_or("mymaster");
  const Reply reply = connection.call({"SENTINEL", "get-master-addr-by-name", name});
  if (reply->elements != 2) fail("the sentinel does not know service " + name);
  return host_text(reply->element[0]->str, std::stoll(reply->element[1]->str));
}

std::set<std::string> masters_by_node(const rig::UrlText& url, const rig::HostPort& node) {
  const Reply reply = Connection(at(url, host_text(node.name, node.port))).call({"CLUSTER", "SLOTS"});
  std::set<std::string> masters;
  for (std::size_t i = 0; i < reply->elements; ++i) {
    const redisReply& range = *reply->element[i];
    if (range.elements < 3 || range.element[2]->elements < 2) fail("unexpected answer to CLUSTER SLOTS");
    const redisReply& name = *range.element[2]->element[0];
    // A node that does not know its own address is the one that was queried.
    masters.insert(
        host_text(name.len != 0 ? std::string(name.str, name.len) : node.name, range.element[2]->element[1]->integer));
  }
  if (masters.empty()) fail("the cluster has no slots");
  return masters;
}

// Queries the URL's first host that answers for the servers that accept writes. Returns the URL with each of them as
// its only host.
std::vector<rig::UrlText> masters_of(const rig::UrlText& url) {
  const bool by_sentinel = url.original().scheme().ends_with("-sentinel");
  if (!by_sentinel && !url.original().scheme().ends_with("-cluster")) return {url};
  const std::uint16_t usual_port = by_sentinel ? 26379 : 6379;
  std::string failures;
  for (const rig::HostPort& each : url.hosts({.name = "localhost", .port = usual_port})) {
    try {
      if (by_sentinel) return {at(url, master_by_sentinel(url, each))};
      std::vector<rig::UrlText> all;
      for (const std::string& master : masters_by_node(url, each)) all.push_back(at(url, master));
      return all;
    } catch (const std::runtime_error& error) {
      failures += (failures.empty() ? "" : "; ") + host_text(each.name, each.port) + ": " + error.what();
    }
  }
  throw std::runtime_error(failures);
}

// A connection to the master that has this key.
Connection connection_for(const rig::UrlText& url, const std::string& key) {
  rig::UrlText master = masters_of(url).front();
  try {
    Connection connection(master);
    (void)connection.call({"GET", key});
    return connection;
  } catch (const std::runtime_error& error) {
    const std::string text = error.what();  // "MOVED 3999 127.0.0.1:6381", of a cluster
    if (text.find("MOVED ") == std::string::npos) throw;
    return Connection(at(std::move(master), text.substr(text.rfind(' ') + 1)));
  }
}

// --- The floor -------------------------------------------------------------------------------------------------------

// The lock of Redis's manual. No fencing token, no queue.
class RedisFloor final : public Floor {
 public:
  RedisFloor(const rig::UrlText& url, std::string key)
      : connection_(connection_for(url, key)),
        key_(std::move(key)),
        release_sha_(connection_.text({"SCRIPT", "LOAD", compare_and_delete})) {}

  void acquire() override { require_free(connection_.text({"SET", key_, owner_, "NX", "PX", "30000"}) == "OK"); }
  void release() override {
    require_held(connection_.call({"EVALSHA", release_sha_, "1", key_, owner_})->integer == 1);
  }

 private:
  static constexpr const char* compare_and_delete =
      "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

  Connection connection_;
  std::string key_;
  std::string owner_ = own_name();
  std::string release_sha_;
};

// --- The target ------------------------------------------------------------------------------------------------------

// The number of the server's connections that are left for clients, and for other programs.
constexpr double spare_connections = 64;

// Commands of clients that no script of dlock calls. The server also counts what scripts call, so the counts of other
// commands do not show the number of requests.
constexpr std::array<std::string_view, 13> sent_by_clients = {
    "asking", "auth",       "client|setname", "cluster|slots", "eval",        "evalsha", "hello",
    "ping",   "ssubscribe", "subscribe",      "sunsubscribe",  "unsubscribe", "wait"};

// Reads INFO commandstats: "cmdstat_eval:calls=2,usec=20,...".
template <class Commands>
double calls_of(std::string_view info, const Commands& commands) {
  double sum = 0;
  for (const std::string_view each : commands) {
    const auto statistics = value_in(info, "cmdstat_" + std::string(each), ':');
    if (statistics) sum += number_in(*statistics, "calls", '=').value_or(0);
  }
  return sum;
}

// "redis", "redis-cluster", "redis-sentinel"
std::string backend_of(const rig::UrlText& url) {
  std::string scheme = url.original().scheme();
  if (scheme.starts_with("rediss")) scheme.erase(sizeof("redis") - 1, 1);
  return scheme;
}

class RedisTarget final : public ServiceTarget {
 public:
  RedisTarget(const rig::UrlText& given, const std::string& strategy)
      : ServiceTarget(given, backend_of(given), strategy),
        prefix_(given.parameter("prefix").value_or("") + own_name_ + ":") {
    set_place("prefix", prefix_);
  }

  void prepare() override;
  [[nodiscard]] std::size_t most_floors() const override { return most_floors_; }
  [[nodiscard]] bool has_floor() const override { return !by_tls(); }
  [[nodiscard]] std::unique_ptr<Floor> floor_at(const rig::UrlText& url, const std::string& name) override {
    return std::make_unique<RedisFloor>(url, prefix_ + "floor:" + name);
  }
  [[nodiscard]] std::optional<Operations> operations() override;
  void clean_up() override;

 private:
  // hiredis alone has no TLS.
  [[nodiscard]] bool by_tls() const { return given().original().scheme().starts_with("rediss"); }

  std::string own_name_ = own_name();
  std::string prefix_;
  std::size_t most_floors_ = 0;
  std::vector<Connection> statistics_;  // one for each master
};

void RedisTarget::prepare() {
  const bool all_have_it = info().backend == "redis-sentinel" && given().parameter("replicas_ack") == "all";
  info_.failover = all_have_it ? loses::nothing : loses::latest;
  info_.crash = loses::unknown;
  if (by_tls()) return;
  const std::vector<rig::UrlText> masters = masters_of(given());
  // The reply's text, or that of its last element. Empty if the user has no right to the command.
  const auto ask = [&](std::initializer_list<std::string_view> words) -> std::string {
    try {
      Reply reply = Connection(masters.front()).call(words);
      const redisReply& last = reply->elements == 0 ? *reply : *reply->element[reply->elements - 1];
      return last.str != nullptr ? std::string(last.str, last.len) : std::string();
    } catch (const std::exception&) {
      return {};
    }
  };
  const auto informed = [&](const char* section, const char* name) {
    return std::string(value_in(ask({"INFO", section}), name, ':').value_or(""));
  };
  const std::string appends = ask({"CONFIG", "GET", "appendonly"});
  const std::string syncs = ask({"CONFIG", "GET", "appendfsync"});
  const std::string saves = ask({"CONFIG", "GET", "save"});
  add_setting("version", informed("server", "redis_version"));
  add_setting("appendonly", appends);
  add_setting("appendfsync", syncs);
  add_setting("save", saves.empty() && !appends.empty() ? "never" : saves);
  if (info().backend != "redis") {
    add_setting("masters", std::to_string(masters.size()));
    add_setting("replicas of each", informed("replication", "connected_slaves"));
  }
  if (appends == "no") info_.crash = loses::everything;
  if (appends == "yes" && !syncs.empty()) info_.crash = syncs == "always" ? loses::nothing : loses::latest;
  // If the limit is unknown, any number is tried.
  if (const auto most = number_in(ask({"INFO", "clients"}), "maxclients", ':')) {
    most_floors_ = static_cast<std::size_t>(std::max(*most - spare_connections, 1.0));
  }
}

std::optional<Operations> RedisTarget::operations() {
  if (by_tls()) return std::nullopt;
  try {
    if (statistics_.empty()) {
      for (const rig::UrlText& each : masters_of(given())) statistics_.emplace_back(each);
    }
    Operations result{};
    double published = 0;
    for (Connection& each : statistics_) {
      const std::string text = each.text({"INFO", "commandstats"});
      result.carried_out += calls_of(text, sent_by_clients);
      published += calls_of(text, std::array<std::string_view, 2>{"publish", "spublish"});
    }
    // With `queue`, a release publishes once, for the client of the next waiter. With `broadcast`, the server does not
    // count how many clients receive the message. A client that polls receives nothing.
    if (info().strategy == "queue") result.wake_ups = published;
    if (info().strategy == "poll") result.wake_ups = 0;
    return result;
  } catch (const std::exception&) {
    statistics_.clear();  // no right to ask, or a connection that broke
    return std::nullopt;
  }
}

// Not by Client::forget(), which refuses names used in the last minute.
void RedisTarget::clean_up() {
  if (by_tls()) fail("not over TLS; the keys that begin with " + prefix_ + " expire after 30 days");
  for (const rig::UrlText& master : masters_of(given())) {
    Connection connection(master);
    std::string cursor = "0";
    do {
      const Reply reply = connection.call({"SCAN", cursor, "MATCH", "*" + own_name_ + "*", "COUNT", "1000"});
      if (reply->elements != 2) fail("unexpected answer to SCAN");
      cursor = reply->element[0]->str;
      const redisReply& keys = *reply->element[1];
      for (std::size_t i = 0; i < keys.elements; ++i) {
        connection.begin({"UNLINK", {keys.element[i]->str, keys.element[i]->len}});
      }
      for (std::size_t i = 0; i < keys.elements; ++i) (void)connection.receive();
    } while (cursor != "0");
  }
}

}  // namespace

std::unique_ptr<ServiceTarget> make_redis_target(const rig::UrlText& url, const std::string& strategy) {
  return std::make_unique<RedisTarget>(url, strategy);
}

}  // namespace dlock::bench
