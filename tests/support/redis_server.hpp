// A Redis server of a test's own: on a free port of 127.0.0.1, in a scratch directory, gone with the object.
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

// A plain, blocking connection: what tests look at the server with, and a locker in another language.
//
//   RedisConnection redis(Endpoint::loopback(server.port()));
//   if (redis.command({"SET", "key", "token", "NX", "PX", "1000"}).is_nil()) { ... }
class RedisConnection {
 public:
  // Throws std::system_error if nobody listens there.
  explicit RedisConnection(const rig::Endpoint& endpoint);

  // Sends a command and waits for its answer. Throws std::runtime_error when the connection breaks or the hang guard
  // ends the wait; an error reply is returned.
  RedisReply command(const std::vector<std::string>& words);
  // The two halves of it, for commands that answer late, often or never.
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
  // What read-write locks and semaphores need, too, and a user who may have locks of all kinds.
  [[nodiscard]] static std::vector<std::string> sharing_rights();
  [[nodiscard]] static RedisUser of_all_kinds();
  // As `user` in a configuration file and ACL SETUSER take it, word by word.
  [[nodiscard]] std::vector<std::string> rules() const;
};

struct RedisConfig {
  bool append_only = false;
  bool tls = false;                                              // and nothing but TLS on the port
  std::string tls_names = ThrowawayCertificate::usual_names;     // whom its certificate is for
  std::shared_ptr<const ThrowawayCertificate> certificate = {};  // of several servers
  std::string password = {};                                     // of the default user
  std::optional<RedisUser> user = {};                            // besides the default user
  std::optional<std::uint16_t> primary = {};                     // whose replica it is
  std::vector<std::string> lines = {};                           // more lines for the configuration file
};

class RedisServer final : public Server {
 public:
  explicit RedisServer(RedisConfig config = {});

  [[nodiscard]] bool serves() const override;
  [[nodiscard]] std::string url_of(const std::string& addresses, const std::string& parameters) const override;

  // A new connection as the default user, past TLS and past any proxy.
  [[nodiscard]] RedisConnection connect() const;
  // On a connection that is kept for this. Throws std::runtime_error for an error reply, and where the connection
  // breaks: sentinels disconnect the clients of a server that they make a master or a replica. The next call makes
  // another.
  RedisReply command(const std::vector<std::string>& words);
  // A field of INFO; empty if there is none.
  [[nodiscard]] std::string info(const std::string& section, const std::string& field);
  // Whether so many replicas have all that was written until now; waits for them for a second. A replica whose link is
  // up may get nothing for that long: a master ignores what a replica acknowledges before it has ended its child
  // process for the synchronisation, and sends it nothing until it acknowledges again.
  [[nodiscard]] bool replicated_to(std::size_t replicas);
  // How often it was told to do these since it started or the counts were reset: by clients, and by scripts of theirs.
  [[nodiscard]] std::int64_t calls_of(std::initializer_list<std::string> commands);
  void reset_counts() { (void)command({"CONFIG", "RESETSTAT"}); }

 private:
  [[nodiscard]] std::vector<std::string> configure() override;
  void disconnect() override { admin_.reset(); }
  [[nodiscard]] std::string socket_path() const { return directory() + "/redis.sock"; }

  RedisConfig config_;
  std::optional<RedisConnection> admin_;
};

// Returns when missing() names nothing any more. An exception counts as something missing: a connection broke, or
// cannot be made yet. Throws std::runtime_error with the last of it when the hang guard ends the wait.
void await_settled(const std::string& what, const std::function<std::string()>& missing);
// How often it stands there.
[[nodiscard]] std::size_t count_of(std::string_view text, std::string_view what);

}  // namespace dlock::test
