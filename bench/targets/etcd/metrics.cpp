#include "bench/targets/etcd/metrics.hpp"

#include <charconv>
#include <system_error>

namespace dlock::bench {

std::optional<double> metric_sum(std::string_view text, std::string_view name) {
  std::optional<double> sum;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() == text.size() ? line.size() : line.size() + 1);
    if (!line.starts_with(name) || line.size() == name.size()) continue;
    if (line[name.size()] != ' ' && line[name.size()] != '{') continue;  // a longer name
    const std::string_view digits = line.substr(line.rfind(' ') + 1);
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || digits.empty()) return std::nullopt;
    (void)end;  // what may follow, such as '\r', is no part of the number
    sum = sum.value_or(0) + value;
  }
  return sum;
}

}  // namespace dlock::bench
