#include "backends/redis/options.hpp"

#include <charconv>
#include <utility>

#include "util/names.hpp"

namespace dlock::redis {

namespace {

constexpr std::size_t max_prefix_bytes = 128;
constexpr std::uint32_t max_replicas = 100;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(errc::invalid_argument, why);
}

std::optional<std::uint32_t> parse_number(std::string_view text, std::uint32_t max) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > max) return std::nullopt;
  return value;
}

std::uint32_t parse_db(std::string_view path) {
  if (path.empty() || path == "/") return 0;
  const auto db = parse_number(path.substr(1), 1U << 30U);
  if (!db) refuse("path: " + util::quoted(path) + " is not /<number of a database>");
  return *db;
}

std::string take_prefix(Url& url) {
  auto prefix = url.take("prefix");
  if (!prefix) return "dlock:";
  if (prefix->empty()) return {};
  if (prefix->size() > max_prefix_bytes) {
    refuse("prefix: longer than " + std::to_string(max_prefix_bytes) + " bytes");
  }
  if (auto problem = util::problem_with_name(*prefix)) refuse("prefix: " + *problem);
  return *std::move(prefix);
}

std::optional<common::TlsOptions> take_tls(Url& url) {
  common::TlsOptions tls;
  const bool wanted = url.scheme() == "rediss";
  const auto take = [&](std::string_view key, std::string& into) {
    auto value = url.take(key);
    if (!value) return;
    if (!wanted) refuse("parameter \"" + std::string(key) + "\" needs rediss://");
    if (value->empty()) refuse("parameter \"" + std::string(key) + "\" names no file");
    into = *std::move(value);
  };
  take("tls_ca", tls.ca_file);
  take("tls_cert", tls.cert_file);
  take("tls_key", tls.key_file);
  if (tls.cert_file.empty() != tls.key_file.empty()) refuse("tls_cert and tls_key go together");
  if (!wanted) return std::nullopt;
  return tls;
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
  if (url.hosts().size() > 1) refuse("host: a list; dlock's locks live in one Redis, so name one host");
  options.host = common::hosts_of(url, options.host.port, 1).front();
  if (url.user() && !url.user()->empty()) options.user = url.user();
  options.password = url.password();
  if (options.user && !options.password) refuse("user: given without a password");
  options.db = parse_db(url.path());
  options.strategy = url.take_choice<Strategy>(
      "strategy", {{"queue", Strategy::queue}, {"broadcast", Strategy::broadcast}, {"poll", Strategy::poll}},
      Strategy::queue);
  options.prefix = take_prefix(url);
  options.replicas_ack = url.take_number("replicas_ack", 0, max_replicas).value_or(0);
  options.tls = take_tls(url);
  url.require_no_parameters();
  options.client_name = client_name(config.holder);
  options.holder = config.holder;
  options.response_timeout = config.response_timeout;
  options.connect_timeout = config.connect_timeout;
  return options;
}

}  // namespace dlock::redis
