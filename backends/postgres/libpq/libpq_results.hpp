// libpq's results in dlock's types.
#pragma once

#include <libpq-fe.h>

#include <string>

#include <dlock/error.hpp>

#include "backends/postgres/sql/common.hpp"

namespace dlock::postgres {

[[nodiscard]] Rows to_rows(const PGresult& result);

// An error or a notice of the server, with its SQLSTATE.
[[nodiscard]] Failure server_failure(const std::string& endpoint, const PGresult& result);

}  // namespace dlock::postgres
