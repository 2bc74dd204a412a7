#include "bench/targets/redis/info.hpp"

#include <array>
#include <charconv>

namespace dlock::bench {

namespace {

constexpr std::array<std::string_view, 13> only_clients_send = {
    "asking", "auth",       "client|setname", "cluster|slots", "eval",        "evalsha", "hello",
    "ping",   "ssubscribe", "subscribe",      "sunsubscribe",  "unsubscribe", "wait"};

}  // namespace

std::string info_field(std::string_view info, std::string_view name) {
  while (!info.empty()) {
    const std::size_t end = info.find('\n');
    std::string_view line = info.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':') {
      return std::string(line.substr(name.size() + 1));
    }
    if (end == std::string_view::npos) break;
    info.remove_prefix(end + 1);
  }
  return {};
}

double command_calls(std::string_view info, std::string_view command) {
  constexpr std::string_view start = "calls=";
  const std::string value = info_field(info, "cmdstat_" + std::string(command));
  if (!value.starts_with(start)) return 0;
  unsigned long long calls = 0;
  (void)std::from_chars(value.data() + start.size(), value.data() + value.size(), calls);  // 0 where that is no number
  return static_cast<double>(calls);
}

double client_requests(std::string_view info) {
  double sum = 0;
  for (const std::string_view command : only_clients_send) sum += command_calls(info, command);
  return sum;
}

}  // namespace dlock::bench
