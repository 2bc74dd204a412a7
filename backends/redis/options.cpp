#include "backends/redis/options.hpp"

#include <utility>

#include "backends/common/kinds.hpp"
#include "backends/redis/hash_slot.hpp"
#include "util/names.hpp"
#include "util/number.hpp"

namespace dlock::redis {

namespace {

constexpr std::size_t max_prefix_bytes = 128;
constexpr std::uint32_t max_replicas = 100;
constexpr std::uint16_t sentinel_port = 26379;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(errc::invalid_argument, why);
}

std::optional<std::uint32_t> parse_number(std::string_view text, std::uint32_t max) {
  const auto value = util::parse_number<std::uint32_t>(text);
  return value <= max ? value : std::nullopt;
}

std::uint32_t parse_db(std::string_view path) {
  if (path.empty() || path == "/") return 0;
  const auto db = parse_number(path.substr(1), 1U << 30U);
  if (!db) refuse("path: " + util::quoted(path) + " is not /<database number>");
  return *db;
}

// The number, or "all".
void take_replicas_ack(Url& url, Options& options) {
  if (options.sentinel) {
    const auto least = url.take_number("replicas_min", 1, max_replicas);
    const auto text = url.take("replicas_ack");
    options.sentinel->all_replicas = text == "all";
    if (options.sentinel->all_replicas) {
      options.replicas_ack = least.value_or(1);
      return;
    }
    if (least) refuse("parameter \"replicas_min\" needs replicas_ack=all");
    if (!text) return;
    const auto number = parse_number(*text, max_replicas);
    if (!number) {
      refuse("parameter \"replicas_ack\": " + util::quoted(*text) + " is neither \"all\" nor a number from 0 to " +
             std::to_string(max_replicas));
    }
    options.replicas_ack = *number;
    return;
  }
  options.replicas_ack = url.take_number("replicas_ack", 0, max_replicas).value_or(0);
}

SentinelOptions take_sentinel(Url& url) {
  SentinelOptions sentinel;
  sentinel.hosts = common::hosts_of(url, sentinel_port, most_sentinels);
  auto service = url.take("service_name");
  if (!service || service->empty()) {
    refuse("parameter \"service_name\" is missing: the name that the sentinels have for the master, such as mymaster");
  }
  if (auto problem = util::problem_with_name(*service)) refuse("service_name: " + *problem);
  sentinel.service = *std::move(service);
  sentinel.user = url.take("sentinel_user");
  sentinel.password = url.take("sentinel_password");
  sentinel.password_file = common::take_password_file(url, "sentinel_password_file", sentinel.password.has_value());
  if (sentinel.user && !sentinel.password && !sentinel.password_file) {
    refuse("sentinel_user: given without sentinel_password");
  }
  if (url.take_choice("sentinel_tls", {{"on", true}, {"off", false}}, url.scheme().starts_with("rediss"))) {
    sentinel.tls.emplace();
  }
  return sentinel;
}

// CLIENT SETNAME takes neither spaces nor anything beyond ASCII.
std::string client_name(std::string_view holder) {
  const std::size_t host = holder.find(':');
  const std::size_t pid = host == std::string_view::npos ? host : holder.find(':', host + 1);
  std::string out = "dlock:";
  for (const char c : pid == std::string_view::npos ? holder : holder.substr(pid + 1)) {
    out += c > ' ' && c <= '~' ? c : '_';
  }
  return out;
}

}  // namespace

std::string_view to_string(Strategy strategy) noexcept {
  switch (strategy) {
    case Strategy::queue:
      return "queue";
    case Strategy::broadcast:
      return "broadcast";
    case Strategy::poll:
      return "poll";
  }
  return "";
}

Options parse_options(const BackendConfig& config) {
  Url url = config.url;
  Options options;
  const bool sentinels = url.scheme().ends_with("-sentinel");
  if (sentinels) {
    options.sentinel = take_sentinel(url);
  } else if (url.scheme().ends_with("-cluster")) {
    options.cluster = ClusterOptions{common::hosts_of(url, options.host.port, most_nodes_named)};
    options.host = options.cluster->hosts.front();
  } else {
    if (url.hosts().size() > 1) {
      refuse(
          "host: redis:// takes one host, not a list; use redis-sentinel:// for sentinels, redis-cluster:// for the "
          "nodes of a cluster");
    }
    options.host = common::hosts_of(url, options.host.port, 1).front();
    options.any_role = url.take_choice("allow_replica", {{"1", true}, {"0", false}}, false);
  }
  if (url.user() && !url.user()->empty()) options.user = url.user();
  options.password = url.password();
  options.password_file = common::take_password_file(url, "password_file", options.password.has_value());
  if (options.user && !options.password && !options.password_file) refuse("user: given without a password");
  options.db = parse_db(url.path());
  if (options.cluster && url.path().size() > 1)
    refuse("path: " + util::quoted(url.path()) + ": a cluster has no numbered databases");
  options.strategy = url.take_choice<Strategy>(
      "strategy", {{"queue", Strategy::queue}, {"broadcast", Strategy::broadcast}, {"poll", Strategy::poll}},
      Strategy::queue);
  options.prefix = common::take_prefix(url, options.prefix, max_prefix_bytes);
  if (options.cluster && !has_usable_braces(options.prefix)) {
    refuse("prefix: " + util::quoted(options.prefix) + ": on a cluster, braces are for a hash tag: {tag}");
  }
  take_replicas_ack(url, options);
  const bool tls = url.scheme().starts_with("rediss");
  auto certificates = common::take_tls_options(url, tls || (options.sentinel && options.sentinel->tls),
                                               "rediss://, rediss-sentinel:// or rediss-cluster://");
  if (options.sentinel && options.sentinel->tls) options.sentinel->tls = certificates;
  if (tls) options.tls = std::move(certificates);
  url.require_no_parameters();
  options.client_name = client_name(config.holder);
  options.holder = config.holder;
  options.lease = config.lease;
  options.response_timeout = config.response_timeout;
  options.connect_timeout = config.connect_timeout;
  return options;
}

}  // namespace dlock::redis
