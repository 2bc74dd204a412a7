#include "backends/redis/connection/handshake.hpp"

#include "backends/redis/connection/command.hpp"
#include "backends/redis/connection/server_error.hpp"
#include "backends/redis/connection/server_info.hpp"

namespace dlock::redis {

Handshake::Handshake(const Options& options) : options_(options) {
  if (options.password || options.password_file) steps_.push_back(Step::auth);
  if (options.db != 0) steps_.push_back(Step::select);
  if (options.sentinel) steps_.insert(steps_.end(), {Step::role, Step::info});
  // Always last, and always there: its reply is the proof that a Redis is at the other end.
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
      case Step::role:
        Command{"ROLE"}.append_to(out);
        break;
      case Step::info:  // for those who may not run ROLE
        Command{"INFO", "replication"}.append_to(out);
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
  if (why.code || next_ == steps_.size()) return why;
  return std::nullopt;
}

Failure Handshake::judge_role(Step step, const Reply& reply) {
  // A server in protected mode says DENIED to whatever comes first, and hangs up.
  const bool denied = reply.is(Reply::Type::error) && classify(reply.text) == ServerError::no_permission &&
                      !reply.text.starts_with("DENIED");
  if (step == Step::role && denied) return {};
  if (step == Step::info && is_master_) return {};
  if (denied)
    return {errc::access_denied, "this user may run neither ROLE nor INFO, which tell a master from a replica"};
  if (reply.is(Reply::Type::error)) return to_failure(reply.text);
  const auto& fields = reply.elements;
  is_master_ = step == Step::role ? !fields.empty() && fields.front().text == "master"
                                  : info_field(reply.text, "role").value_or("") == "master";
  if (is_master_) return {};
  return {errc::unavailable, "the sentinels name it as the master, but it says that it is not (not yet, or no longer)"};
}

Failure Handshake::judge(Step step, const Reply& reply) {
  if (step == Step::role || step == Step::info) return judge_role(step, reply);
  if (reply.is(Reply::Type::status)) return {};
  if (!reply.is(Reply::Type::error)) return unexpected("the handshake", reply);
  const ServerError error = classify(reply.text);
  if (step == Step::set_name) {
    switch (error) {
      case ServerError::no_auth:
      case ServerError::too_many_clients:
        return to_failure(reply.text);
      case ServerError::no_permission:
        // A server in protected mode says so to whatever comes first, and hangs up.
        if (reply.text.starts_with("DENIED")) return to_failure(reply.text);
        return {};
      default:
        return {};  // a name is a comfort, not a condition
    }
  }
  Failure why = to_failure(reply.text);
  // Old servers have words of their own for a password that is wrong.
  if (step == Step::auth && error == ServerError::other) why.code = errc::access_denied;
  return why;
}

}  // namespace dlock::redis
