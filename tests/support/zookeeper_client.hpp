// A plain, blocking session with ZooKeeper, by which tests inspect the tree, and simulate lockers in other languages.
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

// A refusal of the server, with its code.
class ZooKeeperRefusal : public std::runtime_error {
 public:
  ZooKeeperRefusal(const std::string& what, int code);
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

class ZooKeeperClient {
 public:
  // By the flags of the protocol; sequential is ephemeral, too.
  enum class Kind { persistent = 0, ephemeral = 1, sequential = 3, container = 4 };
  enum class Access { everybody, creator };
  struct Node {
    std::string data;
    std::int64_t created;  // czxid
    std::int64_t owner;    // the session of an ephemeral node, else 0
  };

  // Waits for the session. Throws std::runtime_error if there is no server. digest: "user:password".
  explicit ZooKeeperClient(std::string addresses, const std::string& digest = {},
                           std::chrono::milliseconds session_timeout = std::chrono::seconds(30));
  ZooKeeperClient(const ZooKeeperClient&) = delete;
  ZooKeeperClient& operator=(const ZooKeeperClient&) = delete;
  // Closes the session.
  ~ZooKeeperClient();

  // Returns the path, with the number of a sequential node. Throws ZooKeeperRefusal.
  // NOLINTNEXTLINE(modernize-use-nodiscard): done for its effect
  std::string create(const std::string& path, const std::string& data = {}, Kind kind = Kind::persistent,
                     Access access = Access::everybody);
  // Also creates the missing nodes above it.
  void create_all(const std::string& path);
  // False: there is no such node. Throws ZooKeeperRefusal.
  bool remove(const std::string& path);
  // With everything below it; other clients may change it meanwhile.
  void remove_all(const std::string& path);
  // nullopt: no such node.
  [[nodiscard]] std::optional<Node> get(const std::string& path);
  // Sorted. nullopt: no such node.
  [[nodiscard]] std::optional<std::vector<std::string>> children(const std::string& path);
  // From now on no client may create or remove nodes directly below it.
  void forbid_changes(const std::string& path);
  // Later reads are at least as new as the leader's current data.
  void sync();

 private:
  friend void end_session_of(const std::string& addresses, const std::string& node);
  struct Connection;

  void open();
  // A call of the C client, repeated until a server has answered it.
  int repeat(const std::function<int()>& call);

  std::string addresses_;
  std::string digest_;
  std::chrono::milliseconds session_timeout_;
  std::unique_ptr<Connection> connection_;
};

// Ends any client's session at the server; to that client it looks like an expiry. The node is an ephemeral one of that
// session: once it is gone, so is the session.
void end_session_of(const std::string& addresses, const std::string& node);

}  // namespace dlock::test
