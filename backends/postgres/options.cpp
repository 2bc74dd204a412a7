#include "backends/postgres/options.hpp"

#include <algorithm>
#include <array>

#include "backends/postgres/libpq/libpq_parameters.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "util/names.hpp"

namespace dlock::postgres {

namespace {

constexpr std::uint16_t default_port = 5432;
constexpr std::size_t most_hosts = 16;
// A socket's path has at most 107 bytes, and "/.s.PGSQL.65535" follows the directory.
constexpr std::size_t longest_socket_directory = 90;

const Words<Durability> durabilities = {
    {"sync", Durability::sync}, {"async", Durability::async}, {"unlogged", Durability::unlogged}};

[[noreturn]] void refuse(const std::string& why) {
  throw Error(errc::invalid_argument, why);
}

void check_host(const std::string& name) {
  if (!name.starts_with('/')) return common::check_host_name(name);
  if (name.size() <= longest_socket_directory) return;
  refuse("host: the directory " + util::quoted(name) + " is longer than " + std::to_string(longest_socket_directory) +
         " bytes, too long for a socket's path");
}

std::vector<Host> take_hosts(Url& url) {
  const auto parameter = url.take("host");
  if (parameter && !url.hosts().empty()) refuse("host: given twice, before and after the '?'");
  std::vector<Host> hosts = common::hosts_of(url, default_port, most_hosts, check_host);
  if (url.hosts().empty()) {
    Host& host = hosts.front();
    if (parameter) check_host(host.name = *parameter);
    host.port = static_cast<std::uint16_t>(url.take_number("port", 1, 65535).value_or(host.port));
  }
  return hosts;
}

std::optional<std::string> take_database(Url& url) {
  const std::string& path = url.path();
  auto database =
      common::take_either(url, "dbname", path.size() > 1 ? std::optional<std::string>(path.substr(1)) : std::nullopt);
  if (!database) return std::nullopt;
  if (const auto problem = problem_with_identifier(*database)) refuse("database: " + *problem);
  return database;
}

std::string take_schema(Url& url) {
  auto schema = url.take("schema");
  if (!schema) return Options().schema;
  if (const auto problem = problem_with_identifier(*schema)) refuse("schema: " + *problem);
  if (schema->find('.') != std::string::npos) {
    refuse("schema: " + util::quoted(*schema) + " has a '.'; give the name of the schema alone");
  }
  if (schema->starts_with("pg_") || *schema == "information_schema") {
    refuse("schema: " + util::quoted(*schema) + " belongs to PostgreSQL");
  }
  return *std::move(schema);
}

KeyScheme take_key(Url& url, Strategy strategy) {
  const auto value = url.take("key");
  if (!value) return {};
  if (strategy != Strategy::advisory) refuse("key: only strategy=advisory has keys");
  const auto scheme = parse_key_scheme(*value);
  if (!scheme) refuse(std::string("key must be ") + key_schemes + ", not " + util::quoted(*value));
  return *scheme;
}

std::string take_target_session_attrs(Url& url) {
  auto value = url.take("target_session_attrs");
  if (!value) return Options().target_session_attrs;
  constexpr std::array<std::string_view, 3> allowed = {"read-write", "primary", "any"};
  if (std::find(allowed.begin(), allowed.end(), *value) == allowed.end()) {
    refuse("target_session_attrs must be read-write, primary or any, not " + util::quoted(*value) +
           "; locks can only be taken at a primary");
  }
  return *std::move(value);
}

}  // namespace

std::string_view to_string(Durability durability) noexcept {
  return std::ranges::find(durabilities, durability, &std::pair<std::string_view, Durability>::second)->first;
}

std::string as_application_name(std::string_view text) {
  std::string out(text.substr(0, max_identifier_bytes));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

Options parse_options(const BackendConfig& config) {
  Url url = config.url;
  Options options;
  options.hosts = take_hosts(url);
  take_options(options, url, config,
               {{"table", Strategy::table},
                {"optimistic", Strategy::optimistic},
                {"for-update", Strategy::for_update},
                {"advisory", Strategy::advisory}},
               {{"session", Pooler::session}, {"transaction", Pooler::transaction}});
  if (options.user) {
    if (const auto problem = problem_with_identifier(*options.user)) refuse("user: " + *problem);
  }
  options.database = take_database(url);
  options.schema = take_schema(url);
  options.durability = url.take_choice("durability", durabilities, options.durability);
  options.key = take_key(url, options.strategy);
  options.target_session_attrs = take_target_session_attrs(url);
  options.application_name = as_application_name(url.take("application_name").value_or("dlock:" + config.holder));
  options.libpq = take_libpq_parameters(url);
  url.require_no_parameters();
  return options;
}

}  // namespace dlock::postgres
