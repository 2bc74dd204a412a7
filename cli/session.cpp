#include "cli/session.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <dlock/options.hpp>
#include <dlock/url.hpp>

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

Client connect_for_one_lock(const std::string& url, const Arguments& arguments, std::string label,
                            std::shared_ptr<Reporter> reporter) {
  ClientOptions options{.label = std::move(label), .observer = std::move(reporter)};
  const Url parsed = Url::parse(url);
  const auto& parameters = parsed.parameters();
  const bool session_says = std::any_of(parameters.begin(), parameters.end(),
                                        [](const auto& parameter) { return parameter.first == "session_timeout"; });
  if (arguments.lease && !session_says) options.lease = *arguments.lease;
  return connect(url, std::move(options));
}

void warn_if_private(const Client& client, bool quiet) {
  if (quiet || client.capabilities().scope != Scope::process) return;
  say(fmt::format("warning: locks of {} are known to this process only and keep nobody else out", client.url()));
}

}  // namespace dlock::cli
