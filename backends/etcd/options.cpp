#include "backends/etcd/options.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "backends/common/kinds.hpp"
#include "util/duration_text.hpp"
#include "util/names.hpp"

namespace dlock::etcd {

namespace {

constexpr std::uint16_t default_port = 2379;
constexpr std::size_t most_hosts = 64;
constexpr std::size_t longest_prefix = 256;
// Members grant at least one and a half election timeouts. Beyond five minutes, a new leader would have to know the
// time that is left (checkpoints), which is off by default.
constexpr std::chrono::seconds shortest_session{2};
constexpr std::chrono::seconds longest_session{300};

[[noreturn]] void refuse(const std::string& why) {
  throw Error(errc::invalid_argument, why);
}

std::chrono::seconds take_session_ttl(Url& url, std::chrono::nanoseconds lease) {
  const auto given = url.take_duration("session_ttl");
  const auto ttl = std::chrono::ceil<std::chrono::seconds>(given ? given->value() : lease);
  if (given && (given->value() < shortest_session || ttl > longest_session)) {
    refuse("session_ttl: " + util::to_text(given->value()) + " is outside " + util::to_text(shortest_session) + ".." +
           util::to_text(longest_session));
  }
  return std::clamp(ttl, shortest_session, longest_session);
}

}  // namespace

Options parse_options(const BackendConfig& config) {
  Url url = config.url;
  Options options;
  options.hosts = common::hosts_of(url, default_port, most_hosts);
  if (url.path().size() > 1) {
    refuse("path: " + util::quoted(url.path()) + ": etcd has no numbered databases; use prefix to keep locks apart");
  }
  options.user = url.user().value_or("");
  options.password = url.password().value_or("");
  options.password_file = common::take_password_file(url, "password_file", !options.password.empty());
  if (options.user.empty() && options.password_file) refuse("password_file: given without a user");
  if (!options.password_file && options.user.empty() != options.password.empty()) {
    refuse(options.user.empty() ? "password: given without a user" : "user: given without a password");
  }
  options.prefix = common::take_prefix(url, options.prefix, longest_prefix);
  options.verbatim = url.take_choice("names", {{"escaped", false}, {"verbatim", true}}, false);
  options.session_ttl = take_session_ttl(url, config.lease);
  options.tls = common::take_tls_options(url, url.scheme() == "etcds", "etcds://");
  if (options.tls) options.tls->protocol = "h2";
  url.require_no_parameters();
  options.holder = config.holder;
  options.response_timeout = config.response_timeout;
  options.connect_timeout = config.connect_timeout;
  return options;
}

}  // namespace dlock::etcd
