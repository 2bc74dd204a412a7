// Waiters of the row strategies that the test plays, and who tells them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/postgres/rows/wake_ups.hpp"
#include "rows_fixture.hpp"
#include "tests/simulation/postgres/array_elements.hpp"

namespace dlock::postgres {

class WakeUpsTest : public RowsTest {
 protected:
  WakeUpsTest() : RowsTest(Strategy::table) {
    for (const char* const name : {"x", "y", "z"}) rows.give_to(name, "somebody", 24h);
    start();
  }
  void start() {
    wake_ups.emplace(*line.commands, line.dialling, statements, LockKind::lock, rows.channel,
                     [this](const Failure& why) {
                       deaf.push_back(why);
                       if (when_deaf) when_deaf();
                     });
  }
  // A waiter called `who`, who writes down when it is told.
  [[nodiscard]] std::unique_ptr<Watch> watch(const std::string& name, const std::string& who) {
    return wake_ups->watch(name, [this, who] {
      told.push_back(who);
      if (when_told) when_told(who);
    });
  }
  [[nodiscard]] std::vector<std::string> take_told() { return std::exchange(told, {}); }
  [[nodiscard]] const std::string listen() const { return "LISTEN \"" + rows.channel + "\""; }
  [[nodiscard]] std::size_t marks() const { return count("mark"); }
  [[nodiscard]] std::vector<std::string> marked_last() const { return elements_of(last("mark").param(0)); }
  [[nodiscard]] int listening_connection() const {
    int connection = 0;
    for (const FakeQuery& query : server.queries) {
      if (query.purpose.word == "listen") connection = query.connection;
    }
    return connection;
  }

  CommandLine line{engine, server, row_options(Strategy::table)};
  const RowCommands statements{table_statements("dlock", Durability::sync), LockKind::lock, rows.channel};
  std::vector<std::string> told;
  std::function<void(const std::string&)> when_told;
  std::vector<Failure> deaf;
  std::function<void()> when_deaf;
  std::optional<WakeUps> wake_ups;
};

}  // namespace dlock::postgres
