#include "cli/session.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include <dlock/options.hpp>

#include "bench/targets/url_text.hpp"
#include "cli/output.hpp"

namespace dlock::cli {

namespace {
constexpr std::size_t longest_label = 64;
// A session is not asked to be shorter, however short the lease: it would end with the first delay of the network.
constexpr std::chrono::seconds shortest_session{1};
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

Client connect_for_command(const std::string& url, const Arguments& arguments, std::string label,
                           std::shared_ptr<Reporter> reporter) {
  ClientOptions options{.label = std::move(label), .observer = std::move(reporter)};
  bench::UrlText text(url);
  const bool says_session = text.parameter("session_timeout") || text.parameter("session_ttl");
  if (!arguments.lease || says_session) return connect(url, std::move(options));
  options.lease = std::max<Duration>(*arguments.lease, shortest_session);
  text.remove("lease");
  return connect(text.text(), std::move(options));
}

std::shared_ptr<Reporter> reporter_for(const Arguments& arguments) {
  return std::make_shared<Reporter>(arguments.quiet, arguments.wait == Duration(), arguments.verbose);
}

void warn_if_private(const Client& client, bool quiet) {
  if (quiet || client.capabilities().scope != Scope::process) return;
  say(fmt::format("warning: locks of {} are known to this process only and keep nobody else out", client.url()));
}

}  // namespace dlock::cli
