// What is said first on each connection: who is at the other end, and how it is to treat us. No I/O.
//
// Behind a pooler that lends its server connections for single transactions, settings would be other clients', so
// each of them is made only where the process that answers is the one that this connection was made to. Then all of it
// can be said in one round trip. None but the first question has to succeed: a server that does not know a setting, or
// allows no change of it, still keeps locks.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dlock/error.hpp>

#include "backends/postgres/options.hpp"
#include "backends/postgres/sql/connection.hpp"

namespace dlock::postgres {

class Preamble {
 public:
  struct Facts {
    int version = 0;      // PQserverVersion
    int backend_pid = 0;  // PQbackendPID: as the other end of the connection says, be it a server or a pooler
    Pooler pooler = Pooler::detect;
  };

  Preamble(const Purpose& purpose, const Facts& facts);

  // One query each, in this order: the first is the question, the others are settings.
  [[nodiscard]] const std::vector<Command>& commands() const noexcept { return commands_; }

  // The answer to a command. False: nothing can be done with this connection.
  [[nodiscard]] bool answered(std::size_t command, const Outcome& outcome, const Results& results);
  // All of it, once all are answered; the endpoint is missing.
  [[nodiscard]] const ServerInfo& server() const noexcept { return server_; }

 private:
  void set(const std::string& name, const std::string& value);

  const Facts facts_;
  std::vector<Command> commands_;
  std::optional<std::size_t> session_limit_;  // the command that asks for it
  ServerInfo server_;
};

// Parameters of the connection that make a dead server be noticed: names and values as libpq takes them.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> keepalive_parameters(const Purpose& purpose);

}  // namespace dlock::postgres
