// Examines a PostgreSQL server for dangers to locks: its settings, its tables, the rights of the role.
#pragma once

#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/common/sql/commands.hpp"
#include "backends/postgres/options.hpp"

namespace dlock::postgres {

struct Question {
  Statement statement;  // its word is the name of the answer: see Examined::answers
  std::string check;    // the check that needs the answer; empty: other checks report the reason
  std::vector<Parameter> params = {};
};

[[nodiscard]] std::vector<Question> questions_of_doctor(const Options& options);

// Answers within the response timeout. Changes nothing. In tasks only. The options outlive it.
void diagnose(Commands& commands, const Options& options, Backend::Handler<std::vector<Finding>> done);

}  // namespace dlock::postgres
