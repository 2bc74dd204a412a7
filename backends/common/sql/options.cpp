#include "backends/common/sql/options.hpp"

#include <array>
#include <cstddef>

#include <dlock/error.hpp>

namespace dlock::sql {

namespace {

constexpr std::uint32_t most_connections = 1000;

}  // namespace

std::string_view to_string(Strategy strategy) noexcept {
  constexpr std::array<std::string_view, 5> words = {"table", "optimistic", "for-update", "advisory", "named"};
  return words[static_cast<std::size_t>(strategy)];
}

std::string DatabaseOptions::endpoint() const {
  return common::to_string(hosts) + (database ? "/" + *database : "");
}

std::string DatabaseOptions::endpoint_of(const common::Host& host) const {
  return host.to_string() + (database ? "/" + *database : "");
}

void take_options(DatabaseOptions& options, Url& url, const BackendConfig& config, Words<Strategy> strategies,
                  Words<Pooler> poolers) {
  options.user = common::take_either(url, "user", url.user());
  options.password = common::take_either(url, "password", url.password());
  options.password_file = common::take_password_file(url, "password_file", options.password.has_value());
  options.strategy = url.take_choice("strategy", strategies, options.strategy);
  options.pooler = url.take_choice("pooler", poolers, options.pooler);
  if (options.pooler == Pooler::transaction && lives_in_sessions(options.strategy)) {
    throw Error(errc::invalid_argument,
                "pooler=transaction: strategy=" + std::string(to_string(options.strategy)) +
                    " needs sessions of its own; only table and optimistic work through such a pooler");
  }
  options.max_connections = url.take_number("max_connections", 1, most_connections).value_or(options.max_connections);
  options.holder = config.holder;
  options.lease = config.lease;
  options.response_timeout = config.response_timeout;
  options.connect_timeout = config.connect_timeout;
}

}  // namespace dlock::sql
