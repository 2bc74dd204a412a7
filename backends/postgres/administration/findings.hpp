// What was found out about a server and about dlock's tables in it, and what that means for locks. No I/O.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/info.hpp>

#include "backends/postgres/options.hpp"
#include "backends/postgres/sql/connection.hpp"

namespace dlock::postgres {

struct Examined {
  // A row of pg_settings, in the units of the server. Empty where it has none of that name.
  struct Setting {
    std::string now;         // in our session
    std::string by_default;  // of the role, the database or the server
  };

  ServerInfo server = {};
  std::chrono::nanoseconds round_trip{};
  std::int64_t our_clock = 0;  // in seconds since 1970
  // By the names of the questions, which say what is in the rows. Those that the server refused are missing.
  std::map<std::string, Rows, std::less<>> answers = {};

  [[nodiscard]] bool knows(std::string_view question) const { return answers.contains(question); }
  [[nodiscard]] const Rows& answer(std::string_view question) const;  // without rows where there is none
  [[nodiscard]] Setting setting(std::string_view name) const;
};

// The settings that server_findings() looks at.
[[nodiscard]] std::vector<std::string> interesting_settings();

[[nodiscard]] std::vector<Finding> server_findings(const Examined& examined, const Options& options);
[[nodiscard]] std::vector<Finding> table_findings(const Examined& examined, const Options& options);

}  // namespace dlock::postgres
