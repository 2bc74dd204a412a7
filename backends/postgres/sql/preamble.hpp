// The first queries on each connection: they identify the server, and change the settings of the session. No I/O.
//
// Behind a pooler that lends its server connections for single transactions, settings would affect other clients. So
// the server changes a setting only if its process is the one to which this connection was made, and all queries can go
// out in one round trip. Only the first one must succeed: a server that does not know a setting, or does not let us
// change it, still keeps locks.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <dlock/error.hpp>

#include "backends/postgres/options.hpp"
#include "backends/postgres/sql/common.hpp"

namespace dlock::postgres {

class Preamble {
 public:
  struct Facts {
    int version = 0;      // PQserverVersion
    int backend_pid = 0;  // PQbackendPID, which a server or a pooler has sent
    Pooler pooler = Pooler::detect;
  };

  Preamble(const Purpose& purpose, const Facts& facts);

  // One query each, in this order: the first is the question, the others are settings.
  [[nodiscard]] const std::vector<Command>& commands() const noexcept { return commands_; }

  // The answer to a command. False: nothing can be done with this connection.
  [[nodiscard]] bool answered(std::size_t command, const Outcome& outcome, const Results& results);
  // Complete except for the endpoint, once all commands are answered.
  [[nodiscard]] const ServerInfo& server() const noexcept { return server_; }

 private:
  const Facts facts_;
  std::vector<Command> commands_;
  ServerInfo server_;
};

// Parameters of libpq, with which the client notices a dead server.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> keepalive_parameters(const Purpose& purpose);

}  // namespace dlock::postgres
