// The answers of a server about itself and about dlock's tables, and their meaning for locks. No I/O.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/info.hpp>

#include "backends/postgres/options.hpp"
#include "backends/postgres/sql/common.hpp"

namespace dlock::postgres {

struct Examined {
  // A row of pg_settings, in the units of the server. Empty if there is no such setting.
  struct Setting {
    std::string now;         // in our session
    std::string by_default;  // of the role, the database or the server
  };

  ServerInfo server = {};
  std::chrono::nanoseconds round_trip{};
  std::int64_t our_clock = 0;  // in seconds since 1970
  // By the names of the questions (diagnosis.cpp), without those that the server refused.
  std::map<std::string, Rows, std::less<>> answers = {};

  [[nodiscard]] bool knows(std::string_view question) const { return answers.contains(question); }
  [[nodiscard]] const Rows& answer(std::string_view question) const;  // without rows if there is none
  [[nodiscard]] Setting setting(std::string_view name) const;
};

// The settings that server_findings() reads.
[[nodiscard]] std::vector<std::string> interesting_settings();

[[nodiscard]] std::vector<Finding> server_findings(const Examined& examined, const Options& options);
[[nodiscard]] std::vector<Finding> table_findings(const Examined& examined, const Options& options);

}  // namespace dlock::postgres
