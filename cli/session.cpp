#include "cli/session.hpp"

#include <fmt/format.h>

#include "cli/output.hpp"

namespace dlock::cli {

namespace {
constexpr std::size_t longest_label = 64;
}  // namespace

std::string label_for(std::string_view program) {
  const auto slash = program.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? program : program.substr(slash + 1);
  std::string label;
  for (const char c : name.substr(0, longest_label)) {
    const auto byte = static_cast<unsigned char>(c);
    // Anything that is not plain ASCII would need a check for valid and printable UTF-8.
    label += byte > 0x20 && byte < 0x7F ? c : '_';
  }
  return label.empty() ? "dlock" : label;
}

void warn_if_private(const Client& client, bool quiet) {
  if (quiet || client.capabilities().scope != Scope::process) return;
  say(fmt::format("warning: locks of {} are known to this process only and keep nobody else out", client.url()));
}

}  // namespace dlock::cli
