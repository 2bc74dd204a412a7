#include "backends/mysql/options.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "util/names.hpp"

namespace dlock::mysql {

namespace {

constexpr std::uint16_t default_port = 3306;
constexpr std::size_t most_hosts = 16;
constexpr std::size_t longest_schema = 64;
constexpr std::size_t longest_user = 128;
constexpr std::size_t longest_database = 256;  // 64 characters

[[noreturn]] void refuse(const std::string& why) {
  throw Error(errc::invalid_argument, why);
}

void check_text(const std::string& part, std::string_view text, std::size_t longest) {
  if (text.size() > longest) refuse(part + ": longer than " + std::to_string(longest) + " bytes");
  // The rules for names of locks are the same except for the length.
  constexpr std::string_view subject = "lock name ";
  if (auto problem = util::problem_with_name(text)) {
    if (problem->starts_with(subject)) problem->erase(0, subject.size());
    refuse(part + ": " + *problem);
  }
}

std::string take_schema(Url& url) {
  auto schema = url.take("schema");
  if (!schema) return Options().schema;
  if (const auto problem = problem_with_schema(*schema)) refuse("schema: " + *problem);
  return *std::move(schema);
}

bool take_verbatim_keys(Url& url, Strategy strategy) {
  const bool verbatim = url.take_choice<bool>("key", {{"verbatim", true}}, false);
  if (verbatim && strategy != Strategy::named) refuse("key: only strategy=named has keys");
  return verbatim;
}

void take_tls(Url& url, Options& options) {
  const auto& parameters = url.parameters();
  const bool has_ca =
      std::any_of(parameters.begin(), parameters.end(), [](const auto& p) { return p.first == "tls_ca"; });
  options.tls =
      url.take_choice<Tls>("tls", {{"off", Tls::off}, {"unverified", Tls::unverified}, {"verify", Tls::verify}},
                           has_ca ? Tls::verify : Tls::off);
  const auto files = common::take_tls_options(url, options.tls != Tls::off, "tls=verify");
  if (files) options.tls_files = *files;
  if (has_ca && options.tls == Tls::unverified) {
    refuse("tls_ca: with tls=unverified the server's certificate is not checked; omit tls, or use tls=verify");
  }
}

}  // namespace

// Servers fold names of databases to lower case or not, depending on their file system (lower_case_table_names), and
// allow only some bytes without quotes.
std::optional<std::string> problem_with_schema(std::string_view schema) {
  const std::string part = util::quoted(schema);
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '-';
  };
  if (schema.empty() || schema.size() > longest_schema) {
    return part + " is " + std::to_string(schema.size()) + " bytes long; the name of a database has 1 to 64";
  }
  if (!std::all_of(schema.begin(), schema.end(), allowed)) {
    return part +
           " may contain a-z, 0-9, '_', '$' and '-' only: whether a server distinguishes capital letters depends on "
           "its file system, and a '.' would separate a database from a table";
  }
  constexpr std::array<std::string_view, 4> reserved = {"mysql", "sys", "information_schema", "performance_schema"};
  if (std::find(reserved.begin(), reserved.end(), schema) != reserved.end()) return part + " belongs to the server";
  return std::nullopt;
}

Options parse_options(const BackendConfig& config) {
  Url url = config.url;
  Options options;
  options.hosts = common::hosts_of(url, default_port, most_hosts);
  sql::take_options(options, url, config,
                    {{"table", Strategy::table},
                     {"optimistic", Strategy::optimistic},
                     {"for-update", Strategy::for_update},
                     {"named", Strategy::named}},
                    {{"detect", Pooler::detect}, {"session", Pooler::session}, {"transaction", Pooler::transaction}});
  if (options.user) check_text("user", *options.user, longest_user);
  if (url.path().size() > 1) {
    options.database = url.path().substr(1);
    check_text("database", *options.database, longest_database);
  }
  options.schema = take_schema(url);
  options.verbatim_keys = take_verbatim_keys(url, options.strategy);
  options.single_writer = url.take_choice<bool>("single_writer", {{"true", true}, {"false", false}}, false);
  take_tls(url, options);
  url.require_no_parameters();
  if (lives_in_sessions(options.strategy) && options.lease < shortest_session_lease) {
    refuse("lease: strategy=" + std::string(to_string(options.strategy)) +
           " needs at least 1s, because the server counts whole seconds until it ends a silent session");
  }
  return options;
}

}  // namespace dlock::mysql
