// The objects that the strategies of a database use.
#pragma once

#include <dlock/spi/backend.hpp>

#include "backends/common/sql/commands.hpp"
#include "backends/common/sql/session.hpp"

namespace dlock::sql {

// All of them outlive the strategy.
struct Services {
  BackendHost& host;
  const Dialling& dialling;
  Commands& commands;
  const SetUp& set_up;
};

}  // namespace dlock::sql
