// A TCP proxy on the loopback interface that simulates faults of a network.
//
//   TcpProxy proxy(Endpoint::loopback(server.port()));
//   Client client = connect("redis://127.0.0.1:" + std::to_string(proxy.port()));
//   proxy.cut_after(Direction::to_client, 7);                        // seven bytes of an answer, then the line is dead
//   proxy.set(Direction::to_client, {.mode = Traffic::Mode::hold});  // answers do not arrive any more
//   proxy.before_request("EVALSHA", [&] { server.freeze(); });
//
// Runs on its own thread. Every function takes effect before it returns: data not forwarded by then is subject to the
// new rule. All functions may be called from any thread, and from actions.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "torture/rig/proxy_stream.hpp"
#include "torture/rig/socket.hpp"

namespace dlock::rig {

enum class Direction { to_server, to_client };

// How the client's connection ends. The server receives all forwarded data, and then an orderly end.
enum class Ending { close, reset };

class TcpProxy {
 public:
  struct Bytes {
    std::uint64_t taken = 0;   // received from the sender
    std::uint64_t passed = 0;  // forwarded to the receiver
  };
  struct Counters {
    std::size_t accepted = 0;  // connections so far
    std::size_t open = 0;      // connections that are still open
    std::size_t cuts = 0;      // connections ended by a rule of cut_after() or lose_reply_to()
    Bytes to_server;
    Bytes to_client;
  };

  // at: the address to listen on; port 0: the system picks one.
  explicit TcpProxy(Endpoint target, Endpoint at = Endpoint::loopback(0));
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;
  // Resets all connections.
  ~TcpProxy();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

  // For all connections, including future ones.
  void set(Direction direction, const Traffic& traffic);
  void set(const Traffic& both) { set(Direction::to_server, both), set(Direction::to_client, both); }
  // For one connection, by its number: they are numbered from 0 as they are accepted.
  void set(std::size_t connection, Direction direction, const Traffic& traffic);
  // Forwards everything, in all connections, and drops pending rules.
  void pass();

  // Ends a connection right after it has forwarded the last of the next `count` bytes of this direction; if count is 0,
  // instead of forwarding the next one. Acts once, and replaces an earlier rule.
  void cut_after(Direction direction, std::uint64_t count, Ending ending = Ending::reset);
  // Forwards the next request that contains the text, and ends its connection instead of forwarding the answer.
  void lose_reply_to(std::string text, Ending ending = Ending::reset);
  // Runs the action, on the proxy's thread, right before forwarding the next request that contains the text.
  void before_request(std::string text, std::function<void()> action);

  // The target of connections accepted from now on, as after a failover.
  void retarget(Endpoint target);

  // Ends all connections.
  void drop(Ending ending = Ending::reset);
  // Resets the clients' ends of all connections. The server does not notice, as if the network failed, until it closes
  // its ends itself or end_severed() does.
  void sever();
  void end_severed();
  // Refuses new connections, or accepts them again.
  void refuse(bool refused);

  // Includes everything that happened before the call.
  [[nodiscard]] Counters counters() const;
  // Waits until the condition holds. False: the hang guard ended the wait.
  [[nodiscard]] bool wait_until(const std::function<bool(const Counters&)>& condition) const;

 private:
  using Clock = ProxyStream::Clock;
  struct Connection {
    UniqueFd client;
    UniqueFd server;
    ProxyStream to_server{};
    ProxyStream to_client{};
    std::string recent_request{};               // the last forwarded bytes, for texts that span packets
    std::optional<Ending> lost_reply{};         // end the connection like this instead of forwarding an answer
    std::optional<std::size_t> client_place{};  // in the last PollSet
    std::optional<std::size_t> server_place{};
    bool over = false;
  };
  struct Cut {
    Direction direction;
    std::uint64_t count;
    Ending ending;
  };
  struct RequestRule {
    std::string text;
    std::function<void(Connection&)> action;
  };
  class PollSet;

  void run();
  void on_loop(const std::function<void()>& change) const;
  void run_changes();
  void accept_connections();
  void move_bytes(Connection& connection, const PollSet& set, Clock::time_point now);
  void pass_on(Connection& connection, Direction direction, Clock::time_point now);
  [[nodiscard]] bool cut_instead(Connection& connection, Direction direction);
  void apply_request_rules(Connection& connection, std::string_view bytes);
  static void end_at_client(Connection& connection, Ending ending);
  void end(Connection& connection, Ending ending);
  void drain_servers();
  [[nodiscard]] PollSet poll_set(Clock::time_point now);
  void publish_counters();

  Endpoint target_;
  Listener listener_;
  std::uint16_t port_;
  UniqueFd wake_;

  // Only used by the loop's thread.
  std::array<Traffic, 2> traffic_{};
  std::optional<Cut> cut_;
  std::vector<RequestRule> request_rules_;
  std::map<std::size_t, Connection> connections_;
  std::vector<UniqueFd> draining_;  // to servers, until they close, too
  std::vector<UniqueFd> severed_;   // to servers, which do not notice
  Counters current_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Counters counters_;
  mutable std::vector<std::function<void()>> changes_;
  bool stopping_ = false;
  std::jthread thread_;
};

}  // namespace dlock::rig
