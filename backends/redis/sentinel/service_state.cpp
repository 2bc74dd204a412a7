#include "backends/redis/sentinel/service_state.hpp"

#include <array>
#include <string>
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

}  // namespace

Result<common::Host> read_address(const Reply& reply) {
  if (reply.is(Type::nil)) return Failure{errc::invalid_argument, "knows no such service"};
  if (reply.is(Type::array) && reply.elements.size() == 2 && reply.elements[0].is(Type::string) &&
      reply.elements[1].is(Type::string)) {
    if (auto host = host_of(reply.elements[0].text, reply.elements[1].text)) return *std::move(host);
  }
  return unexpected("SENTINEL GET-MASTER-ADDR-BY-NAME", reply);
}

Result<ServiceState> read_service(const Reply& reply) {
  const auto epoch = util::parse_number<std::uint64_t>(field_in(reply, "config-epoch"));
  const auto replicas = number_in(reply, "num-slaves");
  if (!epoch || !replicas) return unexpected("SENTINEL MASTER", reply);
  return ServiceState{
      .master = std::nullopt,
      .epoch = *epoch,
      .replicas = *replicas,
      .quorum = number_in(reply, "quorum").value_or(0),
      .down_after = std::chrono::milliseconds(number_in(reply, "down-after-milliseconds").value_or(0)),
  };
}

std::vector<SentinelId> read_sentinels(const Reply& reply) {
  std::vector<SentinelId> sentinels;
  if (!reply.is(Type::array)) return sentinels;
  for (const Reply& each : reply.elements) {
    auto host = host_of(field_in(each, "ip"), field_in(each, "port"));
    if (host) sentinels.push_back({*std::move(host), std::string(field_in(each, "runid"))});
  }
  return sentinels;
}

// "<service> <old ip> <old port> <new ip> <new port>".
std::optional<common::Host> switched_to(std::string_view message, std::string_view service) {
  std::array<std::string_view, 5> words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t kind = message.find(' ');
    if ((kind == std::string_view::npos) != (i + 1 == words.size())) return std::nullopt;
    words.at(i) = message.substr(0, kind);
    message.remove_prefix(kind == std::string_view::npos ? message.size() : kind + 1);
  }
  if (words[0] != service) return std::nullopt;
  return host_of(words[3], words[4]);
}

}  // namespace dlock::redis
