#include "backends/redis/sentinel/sentinel_reply.hpp"

#include <utility>

#include "backends/redis/connection/server_error.hpp"
#include "backends/redis/connection/server_info.hpp"
#include "util/number.hpp"

namespace dlock::redis {

namespace {

using Type = Reply::Type;

std::optional<common::Host> host_of(std::string_view name, std::string_view port_text) {
  const auto port = util::parse_number<std::uint16_t>(port_text);
  if (!port || *port == 0) return std::nullopt;
  common::Host host{.name = std::string(name), .port = *port};
  return common::is_host_name(host.name) ? std::optional(std::move(host)) : std::nullopt;
}

std::optional<Failure> read_state(const Reply& reply, SentinelReply& to) {
  const auto epoch = util::parse_number<std::uint64_t>(field_in(reply, "config-epoch"));
  const auto replicas = number_in(reply, "num-slaves");
  if (!epoch || !replicas) return unexpected("SENTINEL MASTER", reply);
  to.epoch = epoch;
  to.replicas = *replicas;
  to.quorum = number_in(reply, "quorum").value_or(0);
  to.down_after = std::chrono::milliseconds(number_in(reply, "down-after-milliseconds").value_or(0));
  return std::nullopt;
}

std::optional<Failure> read_address(const Reply& reply, SentinelReply& to) {
  if (reply.is(Type::nil)) return Failure{errc::invalid_argument, "knows no such service"};
  const auto& words = reply.elements;
  if (words.size() == 2 && words[0].is(Type::string) && words[1].is(Type::string)) {
    to.master = host_of(words[0].text, words[1].text);
  }
  return to.master ? std::nullopt : std::optional(unexpected("SENTINEL GET-MASTER-ADDR-BY-NAME", reply));
}

}  // namespace

// MASTER has the epoch, but during a failover an old address. It comes first: if a failover happens between the two
// commands, the address is of a later epoch than the one read, never of an earlier one.
std::vector<Command> sentinel_commands(const std::string& service) {
  return {{"SENTINEL", "MASTER", service},
          {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", service},
          {"SENTINEL", "SENTINELS", service},
          {"SENTINEL", "MYID"}};
}

SentinelReply read_sentinel(const common::Host& sentinel, const std::vector<Result<Reply>>& replies) {
  SentinelReply out = {.sentinel = sentinel};
  const auto read = [&](const Result<Reply>& reply, auto reader) {
    auto problem = reply.ok() ? reader(reply.value(), out) : reply.failure();
    if (problem) out.problem = std::move(problem);  // that of the address matters more
  };
  read(replies.at(0), read_state);
  read(replies.at(1), read_address);
  // Of these two, errors and nonsense are ignored.
  if (const Result<Reply>& others = replies.at(2); others.ok()) {
    for (const Reply& each : others.value().elements) {
      auto host = host_of(field_in(each, "ip"), field_in(each, "port"));
      if (host) out.others.emplace_back(*std::move(host), field_in(each, "runid"));
    }
  }
  if (const Result<Reply>& id = replies.at(3); id.ok() && id.value().is(Type::string)) out.id = id.value().text;
  return out;
}

}  // namespace dlock::redis
