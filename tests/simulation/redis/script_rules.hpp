// The effects of the scripts on a lock's keys, as steps that run on a real server and on the model of one in memory
// (redis_model.hpp), which is thereby what it stands for.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "backends/redis/connection/reply.hpp"

namespace dlock::redis {

// Steps are separated by ';' or stand on lines of their own. "20* step; step" repeats its line, with # as 0 to 19.
// "=>" is followed by what the reply has to be. An error, or a token that is not greater than all before it, has to be
// expected.
//
//   acquire VALUE [MODE] [lease=MS] [alive=MS] [ticket=N]    "token new|same N", or "busy FREE_IN RANK JOINED TICKET"
//   elect, read, write: the same; take PERMITS VALUE ...     also "permits N"
//   acquire-all ...: until the lock is not free any more; the number of calls
//   acquire-1970 VALUE: where the clock is 25.123456 s
//   release VALUE [leave]                                    "OURS MAY_PUBLISH MORE"
//   release-all VALUE: until there is nothing more to do; the number of calls
//   renew VALUE [MS], inspect, forget US
//   listen CLIENT; hear CLIENT: the next message; grant CLIENT: the next one that is a grant
//   holder, waiters; of what several hold: inside (by name), holders (by the ends of their leases)
//   pass VALUE MS: as if so much time had passed for this holder, and a little more
//   gone KEY: waits until it has expired; published: how many messages; forbid-publishing
//   ! COMMAND: as it stands, with _ for a space
//
// Words of a reply: * any, N..M, <=N, >N, ~N up to N and a little less; "" an empty one. More words may follow those
// that are expected of a script.
struct ScriptRule {
  std::string name;
  bool sharing;  // release, renew, inspect and forget are those of read-write locks and semaphores
  const char* steps;
};
inline void PrintTo(const ScriptRule& rule, std::ostream* out) {
  *out << rule.name;
}
[[nodiscard]] const std::vector<ScriptRule>& script_rules();

// The server that the steps run on.
class ScriptServer {
 public:
  using Words = std::vector<std::string>;

  ScriptServer() = default;
  ScriptServer(const ScriptServer&) = delete;
  ScriptServer& operator=(const ScriptServer&) = delete;
  virtual ~ScriptServer() = default;
  [[nodiscard]] virtual Reply command(const Words& words) = 0;
  // As a user who may lose the right to publish.
  [[nodiscard]] virtual Reply script(const Words& words) = 0;
  virtual void forbid_publishing() = 0;
  virtual void listen(const std::string& channel) = 0;
  // The next message there.
  [[nodiscard]] virtual std::string hear(const std::string& channel) = 0;
  // Since CONFIG RESETSTAT.
  [[nodiscard]] virtual std::int64_t published() = 0;
  virtual void await_gone(const std::string& key) = 0;
};

// Reports each step that did something else.
void run_rule(const ScriptRule& rule, ScriptServer& server);

}  // namespace dlock::redis
