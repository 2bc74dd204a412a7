// dlock's schema in a database: made at the first use, by a role that may, or by "dlock init".
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/postgres/options.hpp"
#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sessions/session.hpp"

namespace dlock::postgres {

// In tasks only. Executor, options and dialling outlive it. Tables that exist stay logged or not as they are, whatever
// Options::durability says.
class Schema {
 public:
  // Why the schema cannot be used, or nothing. errc::access_denied: this role may not make it, another one has to.
  // errc::unsupported, errc::invalid_argument: its tables are another version's, or not dlock's.
  using Handler = std::function<void(std::optional<Failure> why_not)>;
  // Everything that was made, each in words for people.
  using Made = std::vector<std::string>;

  Schema(Executor& executor, const Options& options, const Dialling& dialling);
  ~Schema();

  // Makes what is missing, over a connection of its own. Callers at the same time are answered together, never inside
  // the call, and each at the latest at its deadline. Where that is not allowed, the failure says to run "dlock init".
  // The next call tries again what has failed.
  void set_up(TimePoint deadline, Handler done);

  // Does the same, and adds to the tables of an older dlock what they lack.
  void initialize(TimePoint deadline, Backend::Handler<Made> done);

 private:
  class SettingUp;

  void join(TimePoint deadline, bool extends, Backend::Handler<Made> done);

  Executor& executor_;
  const Options& options_;
  const Dialling& dialling_;
  const SchemaStatements statements_;
  std::shared_ptr<SettingUp> under_way_;
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
