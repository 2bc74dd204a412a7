// What is said first on each connection: who we are, which database, how we appear in CLIENT LIST. Where it was
// sentinels who named the server, it has to say itself that it is a master. All commands are sent at once; the replies
// come back in order. No I/O.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/error.hpp>

#include "backends/redis/connection/reply.hpp"
#include "backends/redis/options.hpp"

namespace dlock::redis {

class Handshake {
 public:
  explicit Handshake(const Options& options);

  // All of them, as they are sent. password: where the options have one, or its file.
  [[nodiscard]] std::string commands(std::string_view password) const;

  // Takes the next reply. nullopt: there are more to come. Otherwise the verdict: no code means that the connection is
  // ready for use.
  [[nodiscard]] std::optional<Failure> replied(const Reply& reply);

 private:
  enum class Step { auth, select, role, info, set_name };

  [[nodiscard]] Failure judge(Step step, const Reply& reply);
  [[nodiscard]] Failure judge_role(Step step, const Reply& reply);

  const Options& options_;
  bool is_master_ = false;
  std::vector<Step> steps_;
  std::size_t next_ = 0;
};

}  // namespace dlock::redis
