// Clients of one strategy over one fake MariaDB server.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backends/mysql/mysql_backend.hpp"
#include "tests/simulation/mysql/fake_mysql.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::mysql {

using namespace std::chrono_literals;
using test::Attempt;

class BackendTest : public testing::Test {
 protected:
  // Of one process. Holders are called "host:1:" and its number.
  struct Client {
    Client(test::ManualEngine& engine, FakeMysql& server, int of_process, const Options& options)
        : process(of_process),
          host(engine),
          made(make_backend(host, options, server.connections(of_process))),
          backend(*made) {}

    [[nodiscard]] std::unique_ptr<Attempt> contend(const std::string& name, bool wait) {
      auto attempt = std::make_unique<Attempt>();
      attempt->request = {.name = name,
                          .owner = host.new_owner_id(),
                          .holder = "host:1:" + std::to_string(process),
                          .lease = 10s,
                          .wait = wait};
      attempt->contention = backend.contend(attempt->request, *attempt);
      return attempt;
    }

    const int process;
    test::RecordingHost host;
    const std::unique_ptr<Backend> made;
    Backend& backend;
  };

  BackendTest() {
    options.lease = 12s;
    options.response_timeout = 4s;
    options.connect_timeout = 5s;
    server.wire().records = true;
  }

  [[nodiscard]] std::unique_ptr<Client> client(int process) {
    return std::make_unique<Client>(engine, server, process, options);
  }
  // Without a moment passing.
  [[nodiscard]] std::unique_ptr<Attempt> acquire(Client& by, const std::string& name, bool wait = false) {
    auto attempt = by.contend(name, wait);
    engine.run();
    if (attempt->grant) attempt->contention.reset();
    return attempt;
  }
  // Without a moment passing: "released", "not ours", "failed" or "nothing".
  std::string release(Client& by, Attempt& attempt) {
    attempt.contention.reset();  // it was answered
    const auto said = std::make_shared<std::string>("nothing");
    by.backend.release(*attempt.grant, [said](const ReleaseOutcome& outcome) {
      using Status = ReleaseOutcome::Status;
      *said = outcome.status == Status::released    ? "released"
              : outcome.status == Status::not_owner ? "not ours"
                                                    : "failed";
    });
    engine.run();
    return *said;
  }
  // Of the process, without heartbeats. The words of each query, which is a round trip.
  [[nodiscard]] std::vector<std::string> take_sent(int process) {
    std::vector<std::string> sent;
    for (const sql::FakeQuery& query : server.wire().queries) {
      if (query.process != process || query.is_heartbeat) continue;
      std::string& words = sent.emplace_back();
      for (const sql::Command& command : query.commands) {
        words += (words.empty() ? "" : " ") + (command.statement != nullptr ? command.statement->word : command.text);
      }
    }
    server.wire().queries.clear();
    return sent;
  }
  // Sessions of the process that waited for bells or locks.
  [[nodiscard]] std::size_t sessions_for_waits(int process) {
    std::set<int> sessions;
    for (const sql::FakeQuery& query : server.wire().queries) {
      if (query.process == process && query.purpose.word == "waiting") sessions.insert(query.connection);
    }
    return sessions.size();
  }
  [[nodiscard]] static bool any_has(const std::vector<std::string>& sent, std::string_view word) {
    return std::ranges::any_of(sent, [word](const std::string& each) { return each.find(word) != each.npos; });
  }

  test::ManualEngine engine;
  FakeMysql server{engine};
  Options options;
};

class EachStrategy : public BackendTest, public testing::WithParamInterface<Strategy> {
 protected:
  EachStrategy() { options.strategy = GetParam(); }
};

[[nodiscard]] inline std::string name_of_strategy(const testing::TestParamInfo<Strategy>& info) {
  return info.param == Strategy::for_update ? "for_update" : std::string(to_string(info.param));
}

}  // namespace dlock::mysql
