// dlock's tables in a database. The first client whose user may create them does so, or "dlock init".
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/sql/session.hpp"
#include "backends/mysql/options.hpp"
#include "backends/mysql/sql/layout.hpp"

namespace dlock::mysql {

// In tasks only. Executor, options and dialling outlive it.
class Schema {
 public:
  // The database and the tables that were made, in words.
  using Made = std::vector<std::string>;

  Schema(Executor& executor, const Options& options, const sql::Dialling& dialling);
  ~Schema();

  // Makes what is missing, over a connection of its own. Answers all callers of that time together, never inside the
  // call, and each at the latest at its deadline. errc::access_denied: this user may not create it; the failure says to
  // run "dlock init". errc::unsupported, errc::invalid_argument: the tables have another version, or are not dlock's.
  // After a failure, the next call tries again.
  void initialize(TimePoint deadline, Backend::Handler<Made> done);

 private:
  class SettingUp;

  Executor& executor_;
  const Options& options_;
  const sql::Dialling& dialling_;
  const SchemaStatements statements_;
  std::shared_ptr<SettingUp> under_way_;
  Lifetime lifetime_;
};

}  // namespace dlock::mysql
