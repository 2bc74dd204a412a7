// dlock's schema in a database. The first client whose role may create it does so, or "dlock init".
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
#include "backends/postgres/options.hpp"
#include "backends/postgres/schema/layout.hpp"

namespace dlock::postgres {

// In tasks only. Executor, options and dialling outlive it. Existing tables stay logged or unlogged, whatever
// Options::durability says.
class Schema {
 public:
  // nullopt: the schema can be used. errc::access_denied: this role may not create it. errc::unsupported,
  // errc::invalid_argument: its tables have another version, or are not dlock's.
  using Handler = std::function<void(std::optional<Failure> why_not)>;
  // The schema and tables that were made, in words.
  using Made = std::vector<std::string>;

  Schema(Executor& executor, const Options& options, const Dialling& dialling);
  ~Schema();

  // Makes missing tables, over a connection of its own. Answers all callers of that time together, never inside the
  // call, and each at the latest at its deadline. If the role may not, the failure says to run "dlock init". After a
  // failure, the next call tries again.
  void set_up(TimePoint deadline, Handler done);

  void initialize(TimePoint deadline, Backend::Handler<Made> done);

 private:
  class SettingUp;

  Executor& executor_;
  const Options& options_;
  const Dialling& dialling_;
  const SchemaStatements statements_;
  std::shared_ptr<SettingUp> under_way_;
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
