// A lock taken with the statements of a strategy, one after the other, without the strategy.
//
//   HeldLock lock(server.url(), Strategy::advisory, "name");
//   EXPECT_TRUE(lock.taken());
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/postgres/sql/advisory_key.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/statements.hpp"
#include "live_connection.hpp"

namespace dlock::test {

// Of one connection.
class HeldLock {
 public:
  using Strategy = postgres::Strategy;
  static constexpr const char* holder = "host:1:test";

  HeldLock(const std::string& url, Strategy strategy, std::string name, std::string owner = "owner-1",
           std::string schema = "dlock")
      : strategy_(strategy),
        name_(std::move(name)),
        owner_(std::move(owner)),
        schema_(std::move(schema)),
        connection_(url) {
    if (!connection_.open()) throw std::runtime_error("no connection: " + connection_.lost().detail);
    take();
  }

  [[nodiscard]] bool taken() const { return token_.has_value(); }
  [[nodiscard]] std::uint64_t token() const { return static_cast<std::uint64_t>(token_.value()); }
  // Of the statement that was refused.
  [[nodiscard]] const std::string& sqlstate() const { return sqlstate_; }
  [[nodiscard]] const std::string& failure() const { return failure_; }
  // Whether it was ours until now.
  [[nodiscard]] bool release() {
    switch (strategy_) {
      case Strategy::table:
      case Strategy::optimistic:
        return flag(ask({{.statement = &rows_.release,
                          .params = {postgres::text_array({name_}), postgres::text_array({owner_}), "{0}",
                                     postgres::channel_of(schema_)}}}),
                    1);
      case Strategy::for_update:
        return ask({{.statement = &for_update_.commit}})->outcome().problem == postgres::Problem::none;
      case Strategy::advisory:
        break;
    }
    return flag(ask({{.statement = &advisory_.unlock, .params = {key()}}}), 0);
  }
  // Whether it is still ours.
  [[nodiscard]] bool renew() {
    const auto names = postgres::text_array({name_});
    const auto owners = postgres::text_array({owner_});
    switch (strategy_) {
      case Strategy::table:
      case Strategy::optimistic:
        return flag(ask({{.statement = &rows_.renew, .params = {names, owners, postgres::bigint_array({30'000})}}}), 1);
      case Strategy::for_update:
      case Strategy::advisory:
        break;
    }
    return ask({{.statement = &for_update_.heartbeat}})->outcome().problem == postgres::Problem::none;
  }

 private:
  using Answer = LiveConnection::Answer;

  void take() {
    Answer answer;
    switch (strategy_) {
      case Strategy::table:
      case Strategy::optimistic:
        answer = ask({{.statement = &rows_.acquire,
                       .params = {postgres::text_array({name_}), postgres::text_array({owner_}),
                                  postgres::text_array({holder}), "{30000}", "{\"\"}", "{0}", "{0}", ""}}});
        return read(answer, 1);
      case Strategy::for_update:
        answer = ask({{.statement = &for_update_.ensure, .params = {name_}}});
        if (answer->outcome().problem != postgres::Problem::none) return read(answer, 0);
        answer = ask({{.statement = &for_update_.begin},
                      {.statement = &for_update_.set_patience, .params = {"5000"}},
                      {.statement = &for_update_.try_lock, .params = {name_, holder}}});
        return read(answer, 0);
      case Strategy::advisory:
        answer = ask({{.statement = &advisory_.try_lock, .params = {key(), name_, holder}}});
        return read(answer, 0);
    }
  }
  void read(const Answer& answer, std::size_t column) {
    sqlstate_ = answer->outcome().sqlstate;
    failure_ = answer->outcome().failure.detail;
    if (!answer->results().empty()) token_ = answer->results().back().number(0, column);
  }
  [[nodiscard]] Answer ask(std::vector<postgres::Command> commands) {
    return connection_.ask(postgres::Query{.commands = std::move(commands)});
  }
  [[nodiscard]] static bool flag(const Answer& answer, std::size_t column) {
    return !answer->results().empty() && answer->results().back().flag(0, column);
  }
  [[nodiscard]] std::string key() const {
    return postgres::key_parameter(postgres::advisory_key({}, schema_, name_), name_);
  }

  const Strategy strategy_;
  const std::string name_;
  const std::string owner_;
  const std::string schema_;
  const postgres::RowStatements rows_ = strategy_ == Strategy::table
                                            ? postgres::table_statements(schema_, postgres::Durability::sync)
                                            : postgres::optimistic_statements(schema_, postgres::Durability::sync);
  const postgres::ForUpdateStatements for_update_ =
      postgres::for_update_statements(schema_, postgres::Durability::sync);
  const postgres::AdvisoryStatements advisory_ =
      postgres::advisory_statements(schema_, postgres::Durability::sync, postgres::AdvisoryKey::KeySpace::bigint);
  std::optional<std::int64_t> token_;
  std::string sqlstate_;
  std::string failure_;
  LiveConnection connection_;
};

}  // namespace dlock::test
