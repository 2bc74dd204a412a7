#include "backends/redis/connection/server_info.hpp"

#include "backends/redis/connection/server_error.hpp"
#include "util/names.hpp"
#include "util/number.hpp"

namespace dlock::redis {

std::optional<std::string_view> info_field(std::string_view info, std::string_view key) {
  while (!info.empty()) {
    const std::size_t end = info.find('\n');
    std::string_view line = info.substr(0, end);
    info = end == std::string_view::npos ? std::string_view() : info.substr(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ':')
      return line.substr(key.size() + 1);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> info_number(std::string_view info, std::string_view key) {
  const auto text = info_field(info, key);
  return text ? util::parse_number<std::uint64_t>(*text) : std::nullopt;
}

std::string_view field_in(const Reply& reply, std::string_view name) {
  if (!reply.is(Reply::Type::array)) return {};
  for (std::size_t i = 0; i + 1 < reply.elements.size(); i += 2) {
    if (reply.elements[i].text == name) return reply.elements[i + 1].text;
  }
  return {};
}

std::optional<std::uint32_t> number_in(const Reply& reply, std::string_view name) {
  return util::parse_number<std::uint32_t>(field_in(reply, name));
}

Result<std::uint64_t> read_number(const Reply& reply) {
  if (!reply.is(Reply::Type::integer) || reply.integer < 0) return unexpected("a command that counts", reply);
  return static_cast<std::uint64_t>(reply.integer);
}

std::optional<std::string_view> role_in(const Reply& reply) {
  if (reply.is(Reply::Type::string)) return info_field(reply.text, "role");
  if (!reply.is(Reply::Type::array) || reply.elements.empty()) return std::nullopt;
  const Reply& first = reply.elements.front();
  return first.is(Reply::Type::string) ? std::optional<std::string_view>(first.text) : std::nullopt;
}

std::optional<std::string> eviction_danger(std::string_view info) {
  const auto policy = info_field(info, "maxmemory_policy");
  if (!policy || *policy == "noeviction") return std::nullopt;
  if (info_number(info, "maxmemory").value_or(0) == 0) return std::nullopt;  // no limit, so nothing is evicted
  return "Redis may evict locks, and the records of their tokens, when it runs out of memory: maxmemory-policy is " +
         util::quoted(*policy) + "; set it to noeviction";
}

}  // namespace dlock::redis
