// A Redis server of a test's own: on a free port of 127.0.0.1, in a scratch directory, gone with the object.
//
//   RedisServer server({.append_only = true});
//   Client client = connect(server.url());
//   server.kill();
//   server.start();                              // same port, same data
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/redis_connection.hpp"
#include "tests/support/server.hpp"

namespace dlock::test {

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

}  // namespace dlock::test
