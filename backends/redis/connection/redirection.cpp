#include "backends/redis/connection/redirection.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "backends/redis/hash_slot.hpp"
#include "util/number.hpp"

namespace dlock::redis {

namespace {

std::optional<std::uint16_t> number_in(std::string_view text, std::uint32_t most) {
  const auto value = util::parse_number<std::uint16_t>(text);
  return value && *value <= most ? value : std::nullopt;
}

}  // namespace

std::optional<common::Host> node_host(std::string_view name, std::uint16_t port, const common::Host& asked) {
  if (port == 0) return std::nullopt;
  common::Host host{.name = name.empty() || name == "?" ? asked.name : std::string(name), .port = port};
  return common::is_host_name(host.name) ? std::optional(std::move(host)) : std::nullopt;
}

std::optional<Redirection> read_redirection(std::string_view error, const common::Host& asked) {
  Redirection out;
  const auto take_word = [&error] {
    const std::string_view word = error.substr(0, error.find(' '));
    error.remove_prefix(std::min(error.size(), word.size() + 1));
    return word;
  };
  const std::string_view kind = take_word();
  out.asks = kind == "ASK";
  if (!out.asks && kind != "MOVED") return std::nullopt;
  const auto slot = number_in(take_word(), slots - 1);
  const std::string_view address = take_word();
  const std::size_t colon = address.rfind(':');  // an IPv6 address has no brackets
  if (!slot || colon == std::string_view::npos) return std::nullopt;
  const auto port = number_in(address.substr(colon + 1), std::numeric_limits<std::uint16_t>::max());
  auto to = node_host(address.substr(0, colon), port.value_or(0), asked);
  if (!to) return std::nullopt;
  out.slot = *slot;
  out.to = *std::move(to);
  return out;
}

}  // namespace dlock::redis
