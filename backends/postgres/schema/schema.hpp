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

// In tasks only. What it refers to outlives it. Tables that exist are left as they are, logged or not, whatever
// Options::durability says.
class Schema {
 public:
  // Why it cannot be used, or nothing. errc::access_denied: this role may not make it, another one has to.
  // errc::unsupported, errc::invalid_argument: what is there is another version's, or not dlock's.
  using Handler = std::function<void(std::optional<Failure> why_not)>;

  Schema(Executor& executor, const Options& options, const Dialling& dialling);
  ~Schema();

  // Makes what is missing, over a connection of its own. Callers at the same time are answered together, never inside
  // the call, and each at the latest at its deadline. Where that is not allowed, the failure says to run "dlock init".
  // What failed is tried again by the next call.
  void set_up(TimePoint deadline, Handler done);

  // The same. Answers with what was made, each in words for people.
  void initialize(TimePoint deadline, Backend::Handler<std::vector<std::string>> done);

 private:
  class SettingUp;
  using Done = std::function<void(const Failure* why_not, const std::vector<std::string>& made)>;

  void join(TimePoint deadline, bool extends, Done done);

  Executor& executor_;
  const Options& options_;
  const Dialling& dialling_;
  const SchemaStatements statements_;
  std::shared_ptr<SettingUp> under_way_;
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
