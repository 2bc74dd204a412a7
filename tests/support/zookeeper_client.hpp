// A plain session with ZooKeeper, blocking: what tests look at the tree with, and a locker in another language.
//
//   ZooKeeperClient zk(server.address());
//   zk.create("/a", "data");
//   for (const std::string& child : zk.children("/a").value()) { ... }
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace dlock::test {

// What the server refused, with its code.
class ZooKeeperRefusal : public std::runtime_error {
 public:
  ZooKeeperRefusal(const std::string& what, int code);
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

class ZooKeeperClient {
 public:
  enum class Kind { persistent, container, ephemeral, sequential };  // sequential: ephemeral, too
  enum class Access { everybody, creator };
  struct Node {
    std::string data;
    std::int64_t created;  // czxid
    std::int64_t owner;    // the session of an ephemeral one, else 0
  };

  // Waits until the session stands. Throws std::runtime_error if there is nobody, ZooKeeperRefusal for a wrong digest
  // ("user:password").
  explicit ZooKeeperClient(std::string addresses, const std::string& digest = {},
                           std::chrono::milliseconds session_timeout = std::chrono::seconds(30));
  ZooKeeperClient(const ZooKeeperClient&) = delete;
  ZooKeeperClient& operator=(const ZooKeeperClient&) = delete;
  // Closes the session.
  ~ZooKeeperClient();

  // The path, with the number of a sequential one. Throws ZooKeeperRefusal.
  // NOLINTNEXTLINE(modernize-use-nodiscard): done for its effect
  std::string create(const std::string& path, const std::string& data = {}, Kind kind = Kind::persistent,
                     Access access = Access::everybody);
  // With all nodes above it that are missing.
  void create_all(const std::string& path);
  // False: there is none. Throws ZooKeeperRefusal.
  bool remove(const std::string& path);
  // With all that is below it; others may be at work there.
  void remove_all(const std::string& path);
  // nullopt: no such node.
  [[nodiscard]] std::optional<Node> get(const std::string& path);
  // Sorted. nullopt: no such node.
  [[nodiscard]] std::optional<std::vector<std::string>> children(const std::string& path);
  // From now on nobody may make or remove nodes directly below it.
  void forbid_changes(const std::string& path);
  // What is asked after this is at least as new as what the leader has now.
  void sync(const std::string& path = "/");

 private:
  friend void end_session_of(const std::string& addresses, const std::string& node);
  struct Connection;

  void open();
  // A call of the C client, repeated until it has reached a server and was answered.
  int repeat(const std::function<int()>& call);

  std::string addresses_;
  std::string digest_;
  std::chrono::milliseconds session_timeout_;
  std::unique_ptr<Connection> connection_;
};

// Ends a session of anybody's at the server, whose client finds out as it would of an expiry. The node is an ephemeral
// one of that session: once it is gone, so is the session.
void end_session_of(const std::string& addresses, const std::string& node);

}  // namespace dlock::test
