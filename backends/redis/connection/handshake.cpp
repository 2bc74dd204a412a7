#include "backends/redis/connection/handshake.hpp"

#include "backends/redis/connection/server_error.hpp"
#include "backends/redis/connection/server_info.hpp"
#include "util/names.hpp"

namespace dlock::redis {

Command question_for(RoleQuestion question) {
  return question == RoleQuestion::role ? Command{"ROLE"} : Command{"INFO", "replication"};
}

Failure not_master(const Options& options, std::string_view role) {
  if (role == "sentinel") return {errc::unsupported, "this is a sentinel; use redis-sentinel://"};
  const std::string shown = "role " + util::quoted(role);
  if (options.sentinel) {
    return {errc::unavailable,
            "the sentinels name it as the master, but it says that it is not (not yet, or no longer): " + shown};
  }
  return {errc::unavailable, "this server is not the master (" + shown +
                                 "): two clients could hold the same lock, one here, one at the master"};
}

Handshake::Handshake(const Options& options) : options_(options) {
  if (options.password || options.password_file) steps_.push_back(Step::auth);
  if (options.db != 0) steps_.push_back(Step::select);
  if (options.needs_master()) {
    if (!options.sentinel) steps_.push_back(Step::cluster);
    steps_.insert(steps_.end(), {Step::role, Step::info});
  }
  // Always last: its reply proves that a Redis server is at the other end.
  steps_.push_back(Step::set_name);
}

std::string Handshake::commands(std::string_view password) const {
  std::string out;
  for (const Step step : steps_) {
    switch (step) {
      case Step::auth:
        if (options_.user) {
          Command{"AUTH", *options_.user, password}.append_to(out);
        } else {
          Command{"AUTH", password}.append_to(out);
        }
        break;
      case Step::select:
        Command{"SELECT", std::to_string(options_.db)}.append_to(out);
        break;
      case Step::cluster:
        Command{"INFO", "cluster"}.append_to(out);
        break;
      case Step::role:
        question_for(RoleQuestion::role).append_to(out);
        break;
      case Step::info:  // for users that may not run ROLE
        question_for(RoleQuestion::info).append_to(out);
        break;
      case Step::set_name:
        Command{"CLIENT", "SETNAME", options_.client_name}.append_to(out);
        break;
    }
  }
  return out;
}

std::optional<Failure> Handshake::replied(const Reply& reply) {
  const Step step = steps_[next_++];
  Failure why = judge(step, reply);
  // No request about a lock was sent, so no outcome is unknown.
  if (why.code == errc::ambiguous) why.code = errc::unavailable;
  if (why.code || next_ == steps_.size()) return why;
  return std::nullopt;
}

Failure Handshake::judge_role(Step step, const Reply& reply) {
  if (role_question_ != RoleQuestion::none) return {};  // answered by the step before
  if (reply.is(Reply::Type::error)) {
    // A server in protected mode answers the first command with DENIED, and closes the connection.
    const ServerError error = classify(reply.text);
    const bool may_not = error == ServerError::no_permission && !reply.text.starts_with("DENIED");
    if (!may_not && error != ServerError::unknown_command && error != ServerError::other) return to_failure(reply.text);
    denied_ = denied_ || may_not;
  }
  const auto role = role_in(reply);
  if (role) {
    role_question_ = step == Step::role ? RoleQuestion::role : RoleQuestion::info;
    if (*role == "master") return {};
    other_role_ = true;
    if (in_cluster_) return {errc::unsupported, "this is a replica in a cluster; use redis-cluster://"};
    return not_master(options_, *role);
  }
  if (step == Step::role || !options_.sentinel) return {};
  if (denied_)
    return {errc::access_denied, "this user may run neither ROLE nor INFO, which tell a master from a replica"};
  return not_master(options_, "unknown");
}

Failure Handshake::judge(Step step, const Reply& reply) {
  if (step == Step::role || step == Step::info) return judge_role(step, reply);
  if (step == Step::cluster) {
    in_cluster_ = reply.is(Reply::Type::string) && info_number(reply.text, "cluster_enabled") == 1;
    return {};
  }
  if (reply.is(Reply::Type::status)) return {};
  if (!reply.is(Reply::Type::error)) return unexpected("the handshake", reply);
  const ServerError error = classify(reply.text);
  if (step == Step::set_name) {
    switch (error) {
      case ServerError::no_auth:
      case ServerError::too_many_clients:
        return to_failure(reply.text);
      case ServerError::no_permission:
        // Protected mode, as above.
        if (reply.text.starts_with("DENIED")) return to_failure(reply.text);
        return {};
      default:
        return {};  // the name is optional
    }
  }
  Failure why = to_failure(reply.text);
  // Old servers report a wrong password without an error code of its own.
  if (step == Step::auth && error == ServerError::other) why.code = errc::access_denied;
  return why;
}

}  // namespace dlock::redis
