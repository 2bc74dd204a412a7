// Looks for what endangers locks in a PostgreSQL server: its role, its settings, the rights of our role, its tables.
#pragma once

#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/postgres/sessions/commands.hpp"

namespace dlock::postgres {

// What is asked about the server, beside SchemaStatements.
struct ServerQuestions {
  std::string server;       // one row: version, seconds since 1970, whether over TCP
  std::string settings;     // $1 names; rows of name, value, value by default
  std::string standbys;     // one row: how many
  std::string connections;  // Examined::connections
  std::string indexes;      // $1 schema; Examined::indexes
};

[[nodiscard]] ServerQuestions server_questions();

// Answers within the response timeout. Changes nothing. In tasks only.
void diagnose(Commands& commands, Backend::Handler<std::vector<Finding>> done);

}  // namespace dlock::postgres
