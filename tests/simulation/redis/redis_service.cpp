// The Redis backend in the simulation: over one model of a server, which clients reach as a single server, as any of
// the masters of a cluster, or as the master that sentinels name. A failover loses nothing here, and a slot moves at
// once: losses are a documented limit, and not simulated.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/spi/lifetime.hpp>

#include "backends/redis/hash_slot.hpp"
#include "backends/redis/redis_backend.hpp"
#include "backends/redis/requests/keys.hpp"
#include "backends/redis/sentinel/sentinel_stream.hpp"
#include "backends/redis/timing.hpp"
#include "tests/simulation/redis/redis_model.hpp"
#include "tests/simulation/service.hpp"
#include "tests/unit/redis/fake_server.hpp"

namespace dlock::redis {
namespace {

using namespace std::chrono_literals;
using simulation::Fate;
using Type = Reply::Type;

const std::array<std::string, 3> cluster_nodes = {"a", "b", "c"};
// Requests that were in flight when the client closed the connection arrive within this time, or never.
constexpr std::chrono::milliseconds longest_straggling{900};
constexpr std::chrono::microseconds server_start{1'760'000'000'000'000};  // since 1970

Reply list(std::vector<Reply> elements) {
  return {.type = Type::array, .elements = std::move(elements)};
}
Reply list_of(std::initializer_list<std::string_view> words) {
  Reply reply{.type = Type::array};
  for (const std::string_view word : words) reply.elements.push_back(reply_of::text(word));
  return reply;
}

std::string in_lower_case(std::string word) {
  std::ranges::transform(word, word.begin(), [](char c) { return static_cast<char>(c | 0x20); });
  return word;
}

bool is_script(const Words& words) {
  return words[0] == "EVAL" || words[0] == "EVALSHA";
}

std::string name_of(const Words& words) {
  const Script* const script = is_script(words) ? known_script(words[1]) : nullptr;
  return script != nullptr ? std::string(script->name) : in_lower_case(words[0]);
}

// It says who connects. Without it there is no connection to break.
bool is_handshake(const Words& words) {
  return words[0] == "CLIENT" || words[0] == "ROLE" || words[0] == "INFO" || words[0] == "ASKING";
}

// The command's key or channel; nullptr where it has none.
const std::string* key_of(const Words& words) {
  for (const char* verb : {"SSUBSCRIBE", "SUNSUBSCRIBE", "SPUBLISH", "GET", "ZRANGE"}) {
    if (words[0] == verb) return &words.at(1);
  }
  return is_script(words) && words.at(2) != "0" ? &words.at(3) : nullptr;
}

class RedisService final : public simulation::Service {
 public:
  // scattered: a single server, but every other subscriber is connected to one where nobody publishes, as through a
  // proxy or a name of several servers. Some processes may not subscribe, and sometimes nobody may publish.
  enum class Topology { single, scattered, cluster, sentinel };

  // parameters: of the URL, as "strategy=poll".
  RedisService(Executor& executor, std::uint64_t seed, Topology topology, std::string parameters)
      : executor_(executor), dice_(seed), topology_(topology), parameters_(std::move(parameters)), model_([&executor] {
          return server_start +
                 std::chrono::duration_cast<std::chrono::microseconds>(executor.now().time_since_epoch());
        }) {
    model_.may_publish = topology_ != Topology::scattered || dice_() % 3 != 0;
    for (std::size_t i = 0; i < slots; ++i) {
      owners_of_slots_.push_back(static_cast<std::uint8_t>(i * cluster_nodes.size() / slots));
    }
  }

  [[nodiscard]] std::string url() const override {
    const std::string more = parameters_.empty() ? "" : "?" + parameters_;
    if (topology_ == Topology::cluster) return "redis-cluster://a:6379,b:6379,c:6379" + more;
    if (topology_ != Topology::sentinel) return "redis://one" + more;
    return "redis-sentinel://a,b,c?service_name=ours" + (parameters_.empty() ? "" : "&" + parameters_);
  }

  [[nodiscard]] std::unique_ptr<Backend> connect(int process, BackendHost& host, const BackendConfig& config) override {
    const auto client = clients_.emplace_back(std::make_shared<Client>(process));
    StreamFactory streams = [this, client](Executor& executor, const Options& options, common::Stream::Events& events) {
      const std::string& node = options.host.name;
      auto [found, is_new] = client->servers.try_emplace(options.host.to_string());
      FakeServer& server = found->second;
      if (is_new) {
        const std::string name = options.host.port == 6379 ? node : "sentinel " + node;
        server.serve = [this, &client = *client, name](FakeStream& wire, const Words& words) {
          take(client, name, wire, words);
        };
        server.ended = [this](FakeStream& wire) {
          for (const auto& each : connections_) {
            if (each->wire != &wire) continue;
            each->wire = nullptr;
            each->ended = executor_.now();
          }
        };
      }
      if (unreachable_.contains(client->process)) server.dialling = FakeServer::Dialling::refuse;
      if (client->dead) server.dialling = FakeServer::Dialling::silence;
      return std::make_unique<FakeStream>(server, executor, events);
    };
    Options options = parse_options(config);
    if (topology_ != Topology::sentinel) return std::make_unique<RedisBackend>(host, std::move(options), streams);
    const auto sentinels = std::make_shared<Sentinels>(host.executor(), options, streams);
    return std::make_unique<RedisBackend>(host, std::move(options), sentinel_streams(sentinels, streams), sentinels);
  }

  void cut(int process) override {
    for (const auto& each : connections_) {
      if (each->client.process == process) close(*each);
    }
  }
  void set_reachable(int process, bool reachable) override {
    reachable ? (void)unreachable_.erase(process) : (void)unreachable_.insert(process);
    for (const auto& client : clients_) {
      if (client->process != process || client->dead) continue;
      for (auto& [name, server] : client->servers) {
        server.dialling = reachable ? FakeServer::Dialling::accept : FakeServer::Dialling::refuse;
      }
    }
  }
  // Redis keeps no sessions: a failover, a slot that moves, or a server that forgets its scripts.
  void expire(int /*process*/) override {
    if (topology_ == Topology::sentinel) return fail_over();
    if (topology_ != Topology::cluster) return (void)model_.run({"SCRIPT", "FLUSH"});
    if (used_slots_.empty()) return;
    move_slot(*std::next(used_slots_.begin(), static_cast<std::ptrdiff_t>(dice_() % used_slots_.size())));
  }
  void release_held() override {
    for (const auto& each : connections_) {
      each->holds = false;
      const std::string bytes = std::exchange(each->held, {});
      if (!bytes.empty() && is_open(*each)) each->wire->reply(bytes);
    }
  }
  void bury(int process) override {
    cut(process);
    for (const auto& client : clients_) {
      if (client->process != process) continue;
      client->dead = true;
      for (auto& [name, server] : client->servers) server.dialling = FakeServer::Dialling::silence;
    }
  }

  // A dead client's places stay until their turn comes: then the server passes over them, or waits a second for those
  // that asked by themselves. So they count for nothing here.
  [[nodiscard]] std::size_t owners(LockKind kind, const std::string& name) override {
    const Keys keys = keys_of("dlock:", name, kind);
    Words all = holders(kind, name);
    for (const std::string& waiter : live(keys.alive)) {
      if (!model_.run({"ZSCORE", keys.queue, waiter}).is(Type::nil)) all.push_back(waiter);
    }
    return static_cast<std::size_t>(std::ranges::count_if(all, [this](const std::string& value) {
      const Client* const client = client_of(value);
      return client == nullptr || !client->dead;
    }));
  }
  [[nodiscard]] int holder(LockKind kind, const std::string& name) override {
    const Words all = holders(kind, name);
    const Client* const client = all.empty() ? nullptr : client_of(all.front());
    return client == nullptr ? 0 : client->process;
  }

 private:
  // A backend of a process.
  struct Client {
    explicit Client(int of) : process(of) {}
    const int process;
    bool dead = false;
    std::map<std::string, FakeServer> servers;  // as this client sees them, by their names
  };
  struct Request {
    Words words;
    Fate fate;
    TimePoint at;  // when it is carried out, if those before it have been
  };
  // As the server sees it, which may outlive the client's end.
  struct Connection {
    Connection(Client& of, std::string at, FakeStream* from) : client(of), node(std::move(at)), wire(from) {}
    Client& client;
    std::string node;
    FakeStream* wire;                    // nullptr: the client has closed it
    TimePoint ended = TimePoint::max();  // when it did
    std::set<std::string> channels = {};
    std::deque<Request> waiting = {};
    std::string held = {};  // what is to be sent
    bool holds = false;
    bool silent = false;
    bool closed = false;
    bool asking = false;  // the next command follows ASKING
  };

  // --- Connections ---
  static bool is_open(const Connection& connection) {
    return !connection.silent && !connection.closed && connection.wire != nullptr && !connection.client.dead;
  }
  static void send(Connection& connection, const Reply& reply) {
    if (!is_open(connection)) return;
    if (!connection.holds) return connection.wire->reply(bytes_of(reply));
    connection.held += bytes_of(reply);
  }
  static void close(Connection& connection) {
    connection.channels.clear();
    if (std::exchange(connection.closed, true) || connection.wire == nullptr || connection.client.dead) return;
    connection.wire->close({errc::unavailable, "localhost:6379: Connection reset by peer"});
  }

  void take(Client& client, const std::string& node, FakeStream& wire, const Words& words) {
    if (client.dead) return;
    std::erase_if(connections_, [](const auto& each) { return each->wire == nullptr && each->waiting.empty(); });
    auto found = std::ranges::find_if(connections_, [&wire](const auto& each) { return each->wire == &wire; });
    if (found == connections_.end()) {
      connections_.push_back(std::make_shared<Connection>(client, node, &wire));
      found = connections_.end() - 1;
    }
    const std::shared_ptr<Connection> connection = *found;
    if (connection->silent || connection->closed) return;
    const Fate drawn = is_handshake(words) ? Fate::answer : fate(client.process, name_of(words));
    if (drawn == Fate::silence) connection->silent = true;
    if (drawn == Fate::lose_request) close(*connection);
    if (drawn == Fate::silence || drawn == Fate::lose_request) return;
    const TimePoint at = saturating_add(executor_.now(), drawn == Fate::late ? delay() : 0ms);
    connection->waiting.push_back({words, drawn, at});
    if (connection->waiting.size() == 1) proceed(connection);
  }
  // One after the other: what is late holds up all that came after it.
  void proceed(const std::shared_ptr<Connection>& connection) {
    while (!connection->waiting.empty()) {
      const TimePoint at = connection->waiting.front().at;
      if (at > executor_.now()) {
        (void)executor_.schedule(at, lifetime_.guard([this, connection] { proceed(connection); }));
        return;
      }
      const Request request = std::move(connection->waiting.front());
      connection->waiting.pop_front();
      if (saturating_add(connection->ended, longest_straggling) > executor_.now()) carry_out(*connection, request);
    }
  }
  void carry_out(Connection& connection, const Request& request) {
    const Reply reply =
        request.fate == Fate::refuse ? refusal(connection, request.words) : answer(connection, request.words);
    if (request.fate == Fate::hold) connection.holds = true;
    if (request.fate == Fate::lose_answer) return close(connection);
    send(connection, reply);
    if (request.fate == Fate::expire) expire(connection.client.process);
  }

  // --- Commands ---
  [[nodiscard]] Reply answer(Connection& connection, const Words& words) {
    const std::string& verb = words[0];
    const bool asking = std::exchange(connection.asking, verb == "ASKING");
    if (verb == "CLIENT" || verb == "ASKING" || verb == "AUTH") return {.type = Type::status, .text = "OK"};
    if (verb == "PING") return {.type = Type::status, .text = "PONG"};
    if (verb == "WAIT") return reply_of::number(std::stoll(words.at(1)));
    if (verb == "ROLE") return list_of({is_master(connection.node) ? "master" : "slave"});
    if (verb == "INFO") return reply_of::error("NOPERM this user has no permissions to run the 'info' command");
    if (verb == "CLUSTER") return about_cluster();
    if (verb == "SENTINEL") return about_sentinels(words);
    if (const std::string* const key = topology_ == Topology::cluster ? key_of(words) : nullptr) {
      const std::uint16_t slot = slot_of(*key);
      used_slots_.insert(slot);
      const std::string& owner = cluster_nodes.at(owners_of_slots_.at(slot));
      if (owner != connection.node && !asking)
        return reply_of::error("MOVED " + std::to_string(slot) + ' ' + owner + ":6379");
    }
    return verb.ends_with("SUBSCRIBE") ? subscribe(connection, words) : run(connection, words);
  }
  [[nodiscard]] Reply subscribe(Connection& connection, const Words& words) {
    if (topology_ == Topology::scattered) {
      if (connection.client.process % 4 == 0) return reply_of::error("NOPERM No permissions to access a channel");
      if (connection.channels.empty() && dice_() % 2 == 0) connection.node = "two";
    }
    const bool ends = words[0].find("UNSUB") != std::string::npos;
    ends ? (void)connection.channels.erase(words.at(1)) : (void)connection.channels.insert(words.at(1));
    return list({reply_of::text(in_lower_case(words[0])), reply_of::text(words[1]),
                 reply_of::number(connection.channels.size())});
  }
  [[nodiscard]] Reply run(Connection& connection, const Words& words) {
    if (is_script(words) && name_of(words) == "acquire") {
      const std::string& value = words.at(3 + std::stoul(words.at(2)));  // behind the keys
      clients_by_name_[value.substr(0, value.find(':'))] = &connection.client;
    }
    model_.refuses = is_master(connection.node) ? RedisModel::Refuses::nothing : RedisModel::Refuses::read_only;
    model_.publish = [this, node = connection.node](const std::string& channel, const std::string& message) {
      return publish(node, channel, message);
    };
    return model_.run(words);
  }
  // To those who listen at this node.
  std::int64_t publish(const std::string& node, const std::string& channel, const std::string& message) {
    std::int64_t heard = 0;
    for (const auto& each : connections_) {
      if (each->node != node || each->closed || each->wire == nullptr || !each->channels.contains(channel)) continue;
      ++heard;
      send(*each, list_of({topology_ == Topology::cluster ? "smessage" : "message", channel, message}));
    }
    return heard;
  }
  [[nodiscard]] Reply refusal(const Connection& connection, const Words& words) {
    if (words[0] == "WAIT" && dice_() % 2 == 0) return reply_of::number(0);
    std::vector<std::string> errors = {"LOADING Redis is loading the dataset in memory"};
    const std::string* const key = key_of(words);
    if (is_script(words)) {
      errors.insert(errors.end(), {"BUSY Redis is busy running a script. You can only call SCRIPT KILL",
                                   "OOM command not allowed when used memory > 'maxmemory'.",
                                   "NOREPLICAS Not enough good replicas to write.",
                                   "MISCONF Errors writing to the AOF file: No space left on device",
                                   "READONLY You can't write against a read only replica."});
    }
    if (words[0] == "EVALSHA") errors.emplace_back("NOSCRIPT No matching script. Please use EVAL.");
    if (topology_ == Topology::cluster && key != nullptr) {
      errors.emplace_back("CLUSTERDOWN Hash slot not served");
      if (is_script(words)) {
        const std::string& other = connection.node == "a" ? "b" : "a";
        errors.emplace_back("TRYAGAIN Multiple keys request during rehashing of slot");
        errors.push_back("ASK " + std::to_string(slot_of(*key)) + ' ' + other + ":6379");
      }
    }
    return reply_of::error(errors.at(dice_() % errors.size()));
  }

  // --- Topology ---
  [[nodiscard]] bool is_master(const std::string& node) const {
    return topology_ != Topology::sentinel || node == master_ || node.starts_with("sentinel");
  }
  [[nodiscard]] Reply about_cluster() const {
    Reply reply{.type = Type::array};
    for (std::size_t first = 0, end = 0; first < slots; first = end) {
      const std::uint8_t owner = owners_of_slots_[first];
      while (end < slots && owners_of_slots_[end] == owner) ++end;
      reply.elements.push_back(list({reply_of::number(static_cast<std::int64_t>(first)),
                                     reply_of::number(static_cast<std::int64_t>(end - 1)),
                                     list({reply_of::text(cluster_nodes.at(owner)), reply_of::number(6379)})}));
    }
    return reply;
  }
  [[nodiscard]] Reply about_sentinels(const Words& words) const {
    if (words.at(1) == "MYID") return reply_of::error("ERR unknown subcommand");
    if (words[1] == "GET-MASTER-ADDR-BY-NAME") return list_of({master_, "6379"});
    if (words[1] == "SENTINELS") return list({});
    return list_of({"name", "ours", "config-epoch", std::to_string(epoch_), "num-slaves", "1", "quorum", "2",
                    "down-after-milliseconds", "1000"});
  }
  // The servers disconnect their clients, and the sentinels say where the new master is. Or the old master is demoted,
  // keeps its connections, and nobody announces that.
  void fail_over() {
    const std::string old = std::exchange(master_, master_ == "one" ? "two" : "one");
    ++epoch_;
    if (dice_() % 3 == 0) return;
    for (const auto& each : connections_) {
      if (!each->node.starts_with("sentinel")) close(*each);
    }
    for (const char* sentinel : {"sentinel a", "sentinel b", "sentinel c"}) {
      (void)publish(sentinel, "+switch-master", "ours " + old + " 6379 " + master_ + " 6379");
    }
  }
  void move_slot(std::uint16_t slot) {
    const std::string& old = cluster_nodes.at(owners_of_slots_.at(slot));
    owners_of_slots_[slot] = static_cast<std::uint8_t>(dice_() % cluster_nodes.size());
    if (cluster_nodes.at(owners_of_slots_[slot]) == old) return;
    for (const auto& each : connections_) {
      if (each->node != old) continue;
      for (const std::string& channel : std::set<std::string>(each->channels)) {
        if (slot_of(channel) != slot) continue;
        each->channels.erase(channel);
        send(*each, list({reply_of::text("sunsubscribe"), reply_of::text(channel), reply_of::number(0)}));
      }
    }
  }

  // --- What is there ---
  [[nodiscard]] const Client* client_of(const std::string& value) const {
    const auto found = clients_by_name_.find(value.substr(0, value.find(':')));
    return found == clients_by_name_.end() ? nullptr : found->second;
  }
  [[nodiscard]] Words holders(LockKind kind, const std::string& name) {
    const std::string key = lock_key("dlock:", name, kind);
    if (several_hold(kind)) return live(key);
    const Reply value = model_.run({"GET", key});
    return value.is(Type::nil) ? Words{} : Words{value.text};
  }
  // Members of a sorted set whose scores are times to come.
  [[nodiscard]] Words live(const std::string& key) {
    const auto now = static_cast<double>(model_.now_ms());
    const Reply all = model_.run({"ZRANGE", key, "0", "-1", "WITHSCORES"});
    Words out;
    for (std::size_t i = 0; i + 1 < all.elements.size(); i += 2) {
      if (std::abs(std::stod(all.elements[i + 1].text)) > now) out.push_back(all.elements[i].text);
    }
    return out;
  }

  Executor& executor_;
  std::mt19937_64 dice_;
  const Topology topology_;
  const std::string parameters_;
  RedisModel model_;
  std::vector<std::shared_ptr<Client>> clients_;
  std::vector<std::shared_ptr<Connection>> connections_;
  std::set<int> unreachable_;                             // processes
  std::map<std::string, const Client*> clients_by_name_;  // by the client's part of its values
  std::set<std::uint16_t> used_slots_;
  std::vector<std::uint8_t> owners_of_slots_;  // of a cluster: nodes
  std::string master_ = "one";                 // where there are sentinels
  std::uint64_t epoch_ = 1;
  Lifetime lifetime_;
};

}  // namespace
}  // namespace dlock::redis

namespace dlock::simulation {

std::vector<Subject> subjects() {
  using enum LockKind;
  using Topology = redis::RedisService::Topology;
  const auto subject = [](const std::string& name, std::vector<LockKind> kinds, Topology topology,
                          const std::string& parameters) {
    return Subject{.name = name,
                   .kinds = std::move(kinds),
                   .recovery = std::chrono::seconds(12),
                   .hand_over = std::chrono::milliseconds(100),  // less than a poll, so that wake-ups count
                   .make = [topology, parameters](Executor& executor, std::uint64_t seed) {
                     return std::make_unique<redis::RedisService>(executor, seed, topology, parameters);
                   }};
  };
  // The scripts of all kinds run at a single server. Topologies differ in how requests find their way.
  std::vector<Subject> out = {
      subject("queue", {lock, read_write, semaphore, election}, Topology::single, ""),
      subject("poll", {lock, read_write, semaphore, election}, Topology::single, "strategy=poll"),
      subject("broadcast", {lock, election}, Topology::single, "strategy=broadcast"),
      subject("scattered", {lock, read_write}, Topology::scattered, ""),
      subject("cluster", {lock, read_write}, Topology::cluster, ""),
      subject("cluster_replicas", {lock, semaphore}, Topology::cluster, "replicas_ack=1"),
      subject("sentinel", {lock, election}, Topology::sentinel, "replicas_ack=all")};
  out[1].hand_over = std::chrono::milliseconds(250);
  out[3].hand_over = std::chrono::milliseconds(600);
  // Where no message finds out that waiters are dead, each has a second to confirm, until it was silent for alive_for.
  out[3].session = redis::alive_for;
  out[3].recovery = redis::alive_for + 2 * redis::grant_for;
  return out;
}

}  // namespace dlock::simulation
