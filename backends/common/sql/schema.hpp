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

#include "backends/common/sql/connection.hpp"
#include "backends/common/sql/session.hpp"

namespace dlock::sql {

// The schema and tables that were made, in words.
using MadeTables = std::vector<std::string>;

// How a service looks for its tables and makes them. No I/O. Outlives the connections, as its statements do.
class SchemaSteps {
 public:
  struct Step {
    std::vector<Command> commands = {};  // the next query; none: the end
    std::function<Step(const Results& results)> read = {};
    bool blocks = false;  // the query may wait in the server
    std::optional<Result<MadeTables>> end = std::nullopt;
  };

  SchemaSteps() = default;
  SchemaSteps(const SchemaSteps&) = delete;
  SchemaSteps& operator=(const SchemaSteps&) = delete;
  virtual ~SchemaSteps() = default;

  // Looks at the tables. first: nothing was made yet; otherwise an attempt failed.
  [[nodiscard]] virtual Step look(bool first) = 0;
  // Unless the failure is final.
  [[nodiscard]] virtual int most_attempts() const noexcept { return 1; }
  // For the user: more about a query that the server refused.
  [[nodiscard]] virtual Failure explain(Failure why) const { return why; }
};

// In tasks only.
class Schema {
 public:
  // name: the schema's, quoted. Executor and dialling outlive it.
  Schema(Executor& executor, const Dialling& dialling, std::string name, std::unique_ptr<SchemaSteps> steps);
  ~Schema();

  // Makes what is missing, over a connection of its own. Answers all callers of that time together, never inside the
  // call, and each at the latest at its deadline. errc::access_denied: this user may not create it; the failure says to
  // run "dlock init". errc::unsupported, errc::invalid_argument: the tables have another version, or are not dlock's.
  // After a failure, the next call tries again.
  void initialize(TimePoint deadline, Backend::Handler<MadeTables> done);

 private:
  class SettingUp;

  Executor& executor_;
  const Dialling& dialling_;
  const std::string name_;
  const std::unique_ptr<SchemaSteps> steps_;
  std::shared_ptr<SettingUp> under_way_;
  Lifetime lifetime_;
};

}  // namespace dlock::sql
