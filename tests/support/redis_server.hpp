// A Redis server for a test: on a free port of 127.0.0.1, in a scratch directory, removed with the object.
//
//   RedisServer server({.append_only = true});
//   Client client = connect(server.url());
//   server.kill();
//   server.start();                              // same port, same data
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/server.hpp"
#include "torture/rig/socket.hpp"

struct redisReader;

namespace dlock::test {

struct RedisReply {
  enum class Type { nil, status, error, integer, string, array } type = Type::nil;
  std::int64_t integer = 0;
  std::string text = {};  // of a status, error or string
  std::vector<RedisReply> elements = {};

  [[nodiscard]] bool is_nil() const noexcept { return type == Type::nil; }
  [[nodiscard]] bool is_error() const noexcept { return type == Type::error; }
};

// A plain, blocking connection, by which tests inspect the server, and simulate lockers in other languages.
//
//   RedisConnection redis(Endpoint::loopback(server.port()));
//   if (redis.command({"SET", "key", "token", "NX", "PX", "1000"}).is_nil()) { ... }
class RedisConnection {
 public:
  // Throws std::system_error if it cannot connect.
  explicit RedisConnection(const rig::Endpoint& endpoint);

  // Sends a command and waits for its answer. Throws std::runtime_error when the connection breaks or the hang guard
  // ends the wait; an error reply is returned.
  RedisReply command(const std::vector<std::string>& words);
  // The two halves of command(), for commands that answer late, often or never.
  void send(const std::vector<std::string>& words);
  [[nodiscard]] RedisReply receive();

 private:
  struct FreeReader {
    void operator()(redisReader* reader) const noexcept;
  };

  rig::UniqueFd fd_;
  std::unique_ptr<redisReader, FreeReader> reader_;
};

// A user with few rights. The defaults are exactly those that the Redis backend needs for plain locks.
struct RedisUser {
  std::string name = "locker";
  std::string password = "locker-secret";
  std::vector<std::string> rights = redis_rights();
  std::vector<std::string> patterns = {"~dlock:*", "~{dlock:*", "&dlock:w:*"};  // of keys and channels

  [[nodiscard]] static std::vector<std::string> redis_rights();
  // The further rights for read-write locks and semaphores, and a user with the rights for locks of all kinds.
  [[nodiscard]] static std::vector<std::string> sharing_rights();
  [[nodiscard]] static RedisUser of_all_kinds();
  // For `user` in a configuration file and ACL SETUSER, word by word.
  [[nodiscard]] std::vector<std::string> rules() const;
};

struct RedisConfig {
  bool append_only = false;
  bool tls = false;                                              // the port accepts TLS only
  std::string tls_names = ThrowawayCertificate::usual_names;     // the names in its certificate
  std::shared_ptr<const ThrowawayCertificate> certificate = {};  // shared by several servers
  std::string password = {};                                     // of the default user
  std::optional<RedisUser> user = {};                            // in addition to the default user
  std::optional<std::uint16_t> primary = {};                     // this is its replica
  std::vector<std::string> lines = {};                           // additional lines for the configuration file
};

class RedisServer final : public Server {
 public:
  explicit RedisServer(RedisConfig config = {});

  [[nodiscard]] bool serves() const override;
  [[nodiscard]] std::string url_of(const std::string& addresses, const std::string& parameters) const override;

  // A new connection as the default user, without TLS or any proxy.
  [[nodiscard]] RedisConnection connect() const;
  // On a separate connection, which is kept. Throws std::runtime_error for an error reply, and if the connection
  // breaks: sentinels disconnect the clients of a server that they make a master or a replica. The next call
  // reconnects.
  RedisReply command(const std::vector<std::string>& words);
  // A field of INFO; empty if there is none.
  [[nodiscard]] std::string info(const std::string& section, const std::string& field);
  // Whether so many replicas have everything that was written until now; waits for them for a second. A connected
  // replica may get nothing for that long: a master ignores a replica's acknowledgements until it has ended its child
  // process for the synchronisation, and sends it nothing until the next one.
  [[nodiscard]] bool replicated_to(std::size_t replicas);
  // How often it executed these commands since its start or the last reset: for clients, and for their scripts.
  [[nodiscard]] std::int64_t calls_of(std::initializer_list<std::string> commands);
  void reset_counts() { (void)command({"CONFIG", "RESETSTAT"}); }

 private:
  [[nodiscard]] std::vector<std::string> configure() override;
  void disconnect() override { admin_.reset(); }
  [[nodiscard]] std::string socket_path() const { return directory() + "/redis.sock"; }

  RedisConfig config_;
  std::optional<RedisConnection> admin_;
};

// Returns once missing() returns an empty text. An exception counts as something missing: a connection broke, or cannot
// be opened yet. Throws std::runtime_error with the last text when the hang guard ends the wait.
void await_settled(const std::string& what, const std::function<std::string()>& missing);
// How often `what` occurs in the text.
[[nodiscard]] std::size_t count_of(std::string_view text, std::string_view what);

}  // namespace dlock::test
