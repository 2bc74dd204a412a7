// A batch of the row strategies that the test asks directly.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "backends/postgres/rows/row_batch.hpp"
#include "rows_fixture.hpp"

namespace dlock::postgres {

class RowBatchTest : public RowsTest {
 protected:
  explicit RowBatchTest(Strategy which)
      : RowsTest(which),
        line(engine, server, row_options(which)),
        statements(row_statements(which, "dlock", Durability::sync, LockKind::lock), LockKind::lock, rows.channel),
        batch(std::in_place, *line.commands, statements) {}

  // Owners are numbers; so are requests, in the order of asking.
  std::size_t ask(RowRequest::Kind kind, const std::string& name, std::uint64_t owner,
                  std::chrono::nanoseconds within = response_timeout, bool may_be_held = false) {
    const std::size_t number = answers.size();
    answers.emplace_back();
    when.emplace_back();
    RowRequest request{.kind = kind,
                       .name = name,
                       .owner = OwnerId(0, owner),
                       .deadline = engine.now() + within,
                       .holder = "host:1:test",
                       .may_be_held = may_be_held,
                       .lease = 30s};
    batch->ask(std::move(request), [this, number](const RowAnswer& answer) {
      EXPECT_FALSE(answers[number]) << "answered twice: " << number;
      answers[number] = answer;
      when[number] = engine.now();
      order.push_back(number);
      if (when_answered) when_answered(number);
    });
    EXPECT_FALSE(answers[number]) << "answered inside the call";
    return number;
  }
  std::size_t acquire(const std::string& name, std::uint64_t owner,
                      std::chrono::nanoseconds within = response_timeout) {
    return ask(RowRequest::Kind::acquire, name, owner, within);
  }
  // "yes", "no", "again", the error's number as a word; "" while there is none.
  [[nodiscard]] std::string result(std::size_t number) const {
    const auto& answer = answers.at(number);
    if (!answer) return "";
    switch (answer->status) {
      case RowAnswer::Status::yes:
        return "yes";
      case RowAnswer::Status::no:
        return "no";
      case RowAnswer::Status::again:
        return "again";
      case RowAnswer::Status::failed:
        break;
    }
    return answer->failure.code.message();
  }
  [[nodiscard]] static std::string name_of(errc code) { return std::error_code(code).message(); }
  [[nodiscard]] static std::string owner(std::uint64_t number) { return OwnerId(0, number).to_string(); }

  CommandLine line;
  const RowCommands statements;
  std::vector<std::optional<RowAnswer>> answers;
  std::vector<TimePoint> when;
  std::vector<std::size_t> order;
  std::function<void(std::size_t)> when_answered;
  std::optional<RowBatch> batch;
};

}  // namespace dlock::postgres
