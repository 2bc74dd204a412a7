// Looks for what endangers locks in a PostgreSQL server: its role, its settings, the rights of our role, its tables.
#pragma once

#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/postgres/sessions/commands.hpp"

namespace dlock::postgres {

struct Question {
  Statement statement;  // its word is the name of the answer: see Examined::answers
  std::string check;    // that cannot be made without an answer; empty: other answers say why
  std::vector<Parameter> params = {};
};

[[nodiscard]] std::vector<Question> questions_of_doctor(const Options& options);

// Answers within the response timeout. Changes nothing. In tasks only.
void diagnose(Commands& commands, Backend::Handler<std::vector<Finding>> done);

}  // namespace dlock::postgres
