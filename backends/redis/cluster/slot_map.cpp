#include "backends/redis/cluster/slot_map.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "backends/redis/hash_slot.hpp"
#include "backends/redis/connection/server_error.hpp"
#include "backends/redis/connection/server_info.hpp"
#include "util/number.hpp"

namespace dlock::redis {

namespace {

using Type = Reply::Type;

std::optional<std::uint16_t> number_in(std::string_view text, std::uint32_t most) {
  const auto value = util::parse_number<std::uint16_t>(text);
  return value && *value <= most ? value : std::nullopt;
}

std::optional<std::uint16_t> number_in(const Reply& reply, std::uint32_t most) {
  if (!reply.is(Type::integer) || reply.integer < 0 || reply.integer > most) return std::nullopt;
  return static_cast<std::uint16_t>(reply.integer);
}

// An empty name, or "?": the node does not know it.
std::optional<common::Host> host_at(std::string_view name, std::uint16_t port, const common::Host& asked) {
  if (port == 0) return std::nullopt;
  common::Host host{.name = name.empty() || name == "?" ? asked.name : std::string(name), .port = port};
  return common::is_host_name(host.name) ? std::optional(std::move(host)) : std::nullopt;
}

// first, last, master, and replicas that have had something to copy; a node is its name, its port, and more.
std::optional<SlotRange> read_range(const Reply& reply, const common::Host& asked) {
  const auto& fields = reply.elements;
  if (!reply.is(Type::array) || fields.size() < 3) return std::nullopt;
  const auto first = number_in(fields[0], slots - 1);
  const auto last = number_in(fields[1], slots - 1);
  const auto& node = fields[2].elements;
  if (!first || !last || *last < *first || node.size() < 2) return std::nullopt;
  if (!node[0].is(Type::string) && !node[0].is(Type::nil)) return std::nullopt;
  const auto port = number_in(node[1], std::numeric_limits<std::uint16_t>::max());
  auto master = host_at(node[0].text, port.value_or(0), asked);
  if (!master) return std::nullopt;
  return SlotRange{*first, *last, *std::move(master)};
}

}  // namespace

Result<std::vector<SlotRange>> read_slots(const Reply& reply, const common::Host& asked) {
  if (!reply.is(Type::array)) return unexpected("CLUSTER SLOTS", reply);
  std::vector<SlotRange> ranges;
  std::size_t sum = 0;
  for (const Reply& each : reply.elements) {
    auto range = read_range(each, asked);
    if (range) sum += static_cast<std::size_t>(range->last - range->first) + 1;
    if (!range || sum > slots) {
      return Failure{errc::protocol, asked.to_string() + ": unexpected answer to CLUSTER SLOTS"};
    }
    ranges.push_back(*std::move(range));
  }
  return ranges;
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
  auto to = host_at(address.substr(0, colon), port.value_or(0), asked);
  if (!to) return std::nullopt;
  out.slot = *slot;
  out.to = *std::move(to);
  return out;
}

}  // namespace dlock::redis
