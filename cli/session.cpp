#include "cli/session.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <dlock/info.hpp>
#include <dlock/options.hpp>
#include <dlock/spi/url.hpp>

#include "cli/location.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"
#include "torture/rig/url_text.hpp"

namespace dlock::cli {

namespace {
constexpr std::size_t longest_label = 64;
// dlock requests no shorter session, however short the lease: it would end with the first delay of the network.
constexpr std::chrono::seconds shortest_session{1};

// Whether the URL sets the session's time by this parameter. Throws UsageError if that differs from the lease.
bool says_session(const rig::UrlText& url, const char* parameter, Duration lease) {
  const std::optional<std::string> text = url.parameter(parameter);
  if (!text) return false;
  const std::optional<Duration> session = parse_duration(*text);
  if (!session || *session == lease) return true;  // connect() reports a text that is no time
  throw UsageError(fmt::format(
      "--lease ({}) contradicts {}={} in the URL: with this service the session is the lease; give one of the two",
      for_people(lease.value()), parameter, printable(*text)));
}

// If locks live as long as a session, --lease is the session's time (at least a second), unless the URL sets one.
Client connect_with(const std::string& url, const Arguments& arguments, std::string label,
                    std::shared_ptr<Reporter> reporter) {
  ClientOptions options{.label = std::move(label), .observer = std::move(reporter)};
  rig::UrlText text(url);
  if (!arguments.lease || says_session(text, "session_timeout", *arguments.lease) ||
      says_session(text, "session_ttl", *arguments.lease)) {
    return connect(url, std::move(options));
  }
  options.lease = std::max<Duration>(*arguments.lease, shortest_session);
  text.remove("lease");
  return connect(text.text(), std::move(options));
}

}  // namespace

Session::Session(const Arguments& given, const Inherited& before, std::string label)
    : arguments(given),
      inherited(before),
      url(service_url(given.url)),
      reporter(reporter_for(given)),
      client(connect_with(url, given, std::move(label), reporter)) {
  if (given.quiet || client.capabilities().scope != Scope::process) return;
  say(fmt::format("warning: locks of {} are known to this process only and keep nobody else out", client.url()));
}

Session::~Session() {
  reporter->end_wait();
  reporter->finish_asking();  // it uses the client
}

std::shared_ptr<Reporter> reporter_for(const Arguments& arguments) {
  return std::make_shared<Reporter>(arguments.quiet, arguments.wait == Duration(), arguments.verbose);
}

std::string label_for(std::string_view program) {
  const auto slash = program.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? program : program.substr(slash + 1);
  std::string label;
  for (const char c : name.substr(0, longest_label)) {
    const auto byte = static_cast<unsigned char>(c);
    // Other characters would need a check for valid and printable UTF-8.
    label += byte > 0x20 && byte < 0x7F ? c : '_';
  }
  return label.empty() ? "dlock" : label;
}

}  // namespace dlock::cli
