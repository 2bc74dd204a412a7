#include "backends/redis/cluster/slot_map.hpp"

#include <limits>
#include <string>
#include <utility>

#include "backends/redis/connection/redirection.hpp"
#include "backends/redis/connection/server_error.hpp"
#include "backends/redis/hash_slot.hpp"

namespace dlock::redis {

namespace {

using Type = Reply::Type;

std::optional<std::uint16_t> number_in(const Reply& reply, std::uint32_t most) {
  if (!reply.is(Type::integer) || reply.integer < 0 || reply.integer > most) return std::nullopt;
  return static_cast<std::uint16_t>(reply.integer);
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
  auto master = node_host(node[0].text, port.value_or(0), asked);
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

}  // namespace dlock::redis
