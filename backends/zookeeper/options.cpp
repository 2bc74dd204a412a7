#include "backends/zookeeper/options.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "util/duration_text.hpp"
#include "util/names.hpp"
#include "util/wipe.hpp"

namespace dlock::zookeeper {

namespace {

// The limits of the client library. A server grants a timeout of 2 to 20 of its ticks (tickTime).
constexpr std::chrono::milliseconds shortest_session{100};
constexpr std::chrono::hours longest_session{24};
constexpr std::uint16_t default_port = 2181;
constexpr std::size_t most_hosts = 64;
constexpr std::uint32_t most_sessions = 16;
constexpr std::size_t longest_path = 512;

using Choice = std::pair<std::string_view, Strategy>;
const std::initializer_list<Choice> strategies = {{"sequential", Strategy::sequential},
                                                  {"sequential-herd", Strategy::sequential_herd},
                                                  {"ephemeral", Strategy::ephemeral}};

[[noreturn]] void refuse(const std::string& why) {
  throw Error(errc::invalid_argument, why);
}

// Must be a valid path of a node. "" for the root.
std::string path_of(std::string text, const std::string& part) {
  if (text.empty() || text == "/") return {};
  if (text.front() != '/') refuse(part + ": " + util::quoted(text) + " does not begin with a '/'");
  if (text.size() > longest_path) refuse(part + ": longer than " + std::to_string(longest_path) + " bytes");
  if (auto problem = util::problem_with_name(text)) refuse(part + ": " + *problem);
  const std::string components = text + '/';
  if (components.find("//") != std::string::npos) refuse(part + ": " + util::quoted(text) + " has one '/' too many");
  for (const std::string name : {".", ".."}) {
    if (components.find('/' + name + '/') == std::string::npos) continue;
    refuse(part + ": a node cannot have the name " + util::quoted(name));
  }
  return text;
}

std::string take_prefix(Url& url, const std::string& chroot) {
  auto text = url.take("prefix");
  if (!text) return Options().prefix;
  std::string prefix = path_of(*std::move(text), "prefix");
  if (chroot.empty() && (prefix == "/zookeeper" || prefix.starts_with("/zookeeper/"))) {
    refuse("prefix: /zookeeper belongs to ZooKeeper");
  }
  return prefix;
}

// Its value is never part of a message.
std::optional<std::string> take_digest(Url& url) {
  constexpr std::string_view scheme = "digest:";
  auto value = url.take("auth");
  if (!value) return std::nullopt;
  if (!value->starts_with(scheme)) refuse("auth must be digest:user:password; other schemes are not supported");
  std::string digest = value->substr(scheme.size());
  util::wipe(*value);
  const std::size_t colon = digest.find(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == digest.size()) {
    refuse("auth must be digest:user:password; user and password must not be empty");
  }
  return digest;
}

std::chrono::milliseconds take_session_timeout(Url& url, std::chrono::nanoseconds lease) {
  const auto given = url.take_duration("session_timeout");
  const std::chrono::nanoseconds timeout = given ? given->value() : lease;
  if (timeout < shortest_session || timeout > longest_session) {
    refuse(
        std::string(given ? "session_timeout" : "lease, which is the session timeout unless session_timeout is given") +
        ": " + util::to_text(timeout) + " is outside " + util::to_text(shortest_session) + ".." +
        util::to_text(longest_session));
  }
  return std::chrono::ceil<std::chrono::milliseconds>(timeout);
}

}  // namespace

std::string_view to_string(Strategy strategy) noexcept {
  return std::ranges::find(strategies, strategy, &Choice::second)->first;
}

std::string Options::connect_string() const {
  std::string text;
  for (const Host& host : hosts) text += (text.empty() ? "" : ",") + host.name + ":" + std::to_string(host.port);
  return text + chroot;
}

std::optional<Failure> Options::problem_with(std::string_view lock_name) const {
  if (lock_name != "zookeeper" || !prefix.empty() || !chroot.empty()) return std::nullopt;
  return Failure{errc::invalid_argument, "lock name \"zookeeper\": without a prefix, that node belongs to ZooKeeper"};
}

Options parse_options(const BackendConfig& config) {
  Url url = config.url;
  Options options;
  if (url.user() || url.password()) {
    refuse("user: ZooKeeper takes no user in front of the host; use auth=digest:user:password");
  }
  options.hosts = common::hosts_of(url, default_port, most_hosts);
  options.chroot = path_of(url.path(), "path");
  options.prefix = take_prefix(url, options.chroot);
  options.strategy = url.take_choice("strategy", strategies, options.strategy);
  options.layout =
      url.take_choice<Layout>("layout", {{"curator", Layout::curator}, {"kazoo", Layout::kazoo}}, options.layout);
  options.digest = take_digest(url);
  options.session_timeout = take_session_timeout(url, config.lease);
  options.sessions = url.take_number("sessions", 1, most_sessions).value_or(options.sessions);
  url.require_no_parameters();
  options.holder = config.holder;
  options.response_timeout = config.response_timeout;
  options.connect_timeout = config.connect_timeout;
  return options;
}

}  // namespace dlock::zookeeper
