// The objects that a strategy uses.
#pragma once

#include <dlock/spi/backend.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/postgres/options.hpp"
#include "backends/postgres/schema/schema.hpp"
#include "backends/postgres/sessions/commands.hpp"
#include "backends/postgres/sessions/session.hpp"

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
