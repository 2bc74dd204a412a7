// The objects that a strategy uses.
#pragma once

#include <dlock/spi/backend.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/common/sql/commands.hpp"
#include "backends/common/sql/session.hpp"
#include "backends/postgres/options.hpp"
#include "backends/postgres/schema/schema.hpp"

namespace dlock::postgres {

// All of them outlive the strategy.
struct Services {
  BackendHost& host;
  const Options& options;
  const Dialling& dialling;
  Commands& commands;
  common::ConnectionNews& news;
  Schema& schema;
};

}  // namespace dlock::postgres
