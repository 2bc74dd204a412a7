// The first commands on each connection: authentication, database, the server's role, the name in CLIENT LIST. The
// server must be a master: a replica that accepts writes would grant what its master grants. All commands are sent at
// once; the replies arrive in order. No I/O.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/error.hpp>

#include "backends/redis/connection/command.hpp"
#include "backends/redis/connection/reply.hpp"
#include "backends/redis/options.hpp"

namespace dlock::redis {

// The command whose reply names the server's role to this user; none: no command does.
enum class RoleQuestion { none, role, info };
[[nodiscard]] Command question_for(RoleQuestion question);

// Why a server with this role, which is not "master", grants no locks.
[[nodiscard]] Failure not_master(const Options& options, std::string_view role);

class Handshake {
 public:
  explicit Handshake(const Options& options);

  // All commands, encoded. password: if the options have one, or a password file.
  [[nodiscard]] std::string commands(std::string_view password) const;

  // Takes the next reply. nullopt: more follow. Otherwise the verdict; no code: the connection is ready.
  [[nodiscard]] std::optional<Failure> replied(const Reply& reply);
  // From the replies.
  [[nodiscard]] RoleQuestion role_question() const noexcept { return role_question_; }
  // The server is no master; a different address of its name may lead to one.
  [[nodiscard]] bool refused_role() const noexcept { return other_role_; }

 private:
  enum class Step { auth, select, cluster, role, info, set_name };

  [[nodiscard]] Failure judge(Step step, const Reply& reply);
  [[nodiscard]] Failure judge_role(Step step, const Reply& reply);

  const Options& options_;
  bool in_cluster_ = false;
  bool denied_ = false;
  bool other_role_ = false;
  RoleQuestion role_question_ = RoleQuestion::none;
  std::vector<Step> steps_;
  std::size_t next_ = 0;
};

}  // namespace dlock::redis
