#include "backends/common/findings.hpp"

#include <charconv>
#include <cstddef>

#include "util/duration_text.hpp"

namespace dlock::common {

using Severity = Finding::Severity;

namespace {

constexpr std::chrono::seconds clock_difference{5};

}  // namespace

Version parse_version(std::string_view text) {
  Version version{};
  for (int& part : version) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), part);
    if (error != std::errc()) break;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.starts_with('.')) break;
    text.remove_prefix(1);
  }
  return version;
}

Finding server_answered(const std::string& endpoint, std::chrono::nanoseconds within) {
  return {Severity::ok, "server",
          endpoint + " answered within " + util::to_text(std::chrono::ceil<std::chrono::microseconds>(within))};
}

Finding compared_clocks(std::int64_t server, std::int64_t ours, Severity severity, std::string_view consequence) {
  const std::chrono::seconds difference(server - ours);
  if (std::chrono::abs(difference) <= clock_difference) {
    return {Severity::ok, "clock", "the server's clock agrees with ours"};
  }
  return {severity, "clock",
          "the server's clock is " + util::to_text(std::chrono::abs(difference)) +
              (difference.count() > 0 ? " ahead of" : " behind") + " ours; if it is corrected, " +
              std::string(consequence)};
}

bool is_this_machine(std::string_view endpoint) {
  const std::size_t colon = endpoint.find(':');
  const bool loopback = endpoint.starts_with("127.") && endpoint.find_first_not_of("0123456789.") == colon;
  return loopback || endpoint.starts_with("localhost:") || endpoint.starts_with("[::1]:");
}

Finding not_encrypted(bool this_machine, std::string_view and_so) {
  if (this_machine) return {Severity::ok, "encryption", "none, and none needed on this machine"};
  return {Severity::warning, "encryption",
          "none: anyone on the network path can read and change all traffic" + std::string(and_so)};
}

}  // namespace dlock::common
