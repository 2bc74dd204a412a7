// The Redis backend in the simulation: over one model of a server, which clients reach as a single server, as any of
// the masters of a cluster, or as the master that sentinels name. A failover loses nothing here, and a slot moves at
// once: losses are a documented limit, and not simulated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/spi/lifetime.hpp>

#include "backends/redis/hash_slot.hpp"
#include "tests/simulation/redis/redis_model.hpp"
#include "tests/simulation/service.hpp"
#include "tests/unit/redis/fake_server.hpp"

namespace dlock::redis {

class RedisService final : public simulation::Service {
 public:
  // scattered: a single server, but every other subscriber is connected to one where nobody publishes, as through a
  // proxy or a name of several servers. Some processes may not subscribe, and sometimes nobody may publish.
  enum class Topology { single, scattered, cluster, sentinel };

  // parameters: of the URL, as "strategy=poll".
  RedisService(Executor& executor, std::uint64_t seed, Topology topology, std::string parameters);

  [[nodiscard]] std::string url() const override;
  [[nodiscard]] std::unique_ptr<Backend> connect(int process, BackendHost& host, const BackendConfig& config) override;
  void cut(int process) override;
  void set_reachable(int process, bool reachable) override;
  // Redis keeps no sessions: a failover, a slot that moves, or a server that forgets its scripts.
  void expire(int process) override;
  void release_held() override;
  void bury(int process) override;
  [[nodiscard]] std::size_t owners(LockKind kind, const std::string& name) override;
  [[nodiscard]] int holder(LockKind kind, const std::string& name) override;

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
    simulation::Fate fate;
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

  void take(Client& client, const std::string& node, FakeStream& wire, const Words& words);
  void proceed(const std::shared_ptr<Connection>& connection);
  void carry_out(Connection& connection, const Request& request);
  [[nodiscard]] Reply answer(Connection& connection, const Words& words);
  [[nodiscard]] Reply subscribe(Connection& connection, const Words& words);
  [[nodiscard]] Reply about_cluster() const;
  [[nodiscard]] Reply about_sentinels(const Words& words) const;
  [[nodiscard]] Reply run(Connection& connection, const Words& words);
  [[nodiscard]] Reply refusal(const Connection& connection, const Words& words);
  static void send(Connection& connection, const Reply& reply);
  static void close(Connection& connection);
  [[nodiscard]] std::int64_t publish(const std::string& node, const std::string& channel, const std::string& message);
  void change();
  void fail_over();
  void move_slot(std::uint16_t slot);
  [[nodiscard]] bool is_master(const std::string& node) const;
  // The command's key or channel; nullptr where it has none.
  [[nodiscard]] static const std::string* key_of(const Words& words);
  [[nodiscard]] const Client* client_of(const std::string& value) const;
  [[nodiscard]] Words holders(LockKind kind, const std::string& name);
  // Members of a sorted set whose scores are times to come.
  [[nodiscard]] Words live(const std::string& key);

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

}  // namespace dlock::redis
