// dlock's schema in a database: made at the first use, by a role that may, or by "dlock init".
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlock/backend.hpp>
#include <dlock/executor.hpp>

#include "backends/postgres/options.hpp"
#include "backends/postgres/schema_statements.hpp"
#include "backends/postgres/session.hpp"

namespace dlock::postgres {

// In tasks only. What it refers to outlives it.
class Schema {
 public:
  // Why it cannot be used, or nothing.
  using Handler = std::function<void(std::optional<Failure> why_not)>;

  Schema(Executor& executor, const Options& options, const Dialling& dialling);
  ~Schema();

  // Makes what is missing, over a connection of its own. Callers at the same time are answered together, never inside
  // the call, and each at the latest at its deadline. Where that is not allowed, the failure says to run "dlock init".
  void set_up(TimePoint deadline, Handler done);

 private:
  class SettingUp;

  Executor& executor_;
  const Options& options_;
  const Dialling& dialling_;
  std::shared_ptr<SettingUp> under_way_;
};

}  // namespace dlock::postgres
