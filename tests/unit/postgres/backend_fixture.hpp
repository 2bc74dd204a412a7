// Clients of one strategy over one fake server: what must hold whatever is inside the backend.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/postgres/postgres_backend.hpp"
#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/lock_key.hpp"
#include "tests/simulation/postgres/fake_postgres.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::postgres {

using namespace std::chrono_literals;
using simulation::Fate;
using test::Attempt;

inline constexpr std::array strategies{Strategy::table, Strategy::optimistic, Strategy::advisory, Strategy::for_update};

class BackendTest : public testing::TestWithParam<Strategy> {
 protected:
  using Words = std::vector<std::string>;
  using Attempts = std::vector<std::unique_ptr<Attempt>>;

  // Of one process.
  struct Client {
    Client(test::ManualEngine& engine, FakePostgres& server, int process, const Options& options)
        : host(engine),
          lease(std::min<std::chrono::nanoseconds>(10s, options.lease)),
          backend(make_backend(host, options, server.connections(process))) {}

    [[nodiscard]] std::unique_ptr<Attempt> contend(const std::string& name, bool wait, LockKind kind = LockKind::lock,
                                                   Mode mode = Mode::exclusive) {
      return contend(
          {.name = name, .owner = {}, .holder = {}, .lease = lease, .wait = wait, .kind = kind, .mode = mode});
    }
    [[nodiscard]] std::unique_ptr<Attempt> contend(const std::string& name, bool wait,
                                                   std::chrono::nanoseconds of_lease) {
      return contend({.name = name, .owner = {}, .holder = {}, .lease = of_lease, .wait = wait});
    }
    // With an owner of its own.
    [[nodiscard]] std::unique_ptr<Attempt> contend(LockRequest request) {
      auto attempt = std::make_unique<Attempt>();
      request.owner = host.new_owner_id();
      request.holder = "host:1:test";
      attempt->request = std::move(request);
      attempt->contention = backend->contend(attempt->request, *attempt);
      return attempt;
    }

    test::RecordingHost host;
    std::chrono::nanoseconds lease;
    std::unique_ptr<Backend> backend;
  };

  explicit BackendTest(std::uint32_t connections = 4) {
    options.strategy = GetParam();
    options.lease = 12s;
    options.response_timeout = 4s;
    options.connect_timeout = 5s;
    options.max_connections = connections;
    server.refusal = [this](int process, std::string_view word, const Command& command) {
      const bool chosen = process == 1 && word.find(refused_) != word.npos && (!refuses || refuses(command));
      return chosen && takes_one(refused_, refusals_, word) ? state_ : std::string();
    };
    server.fate = [this](int process, std::string_view words) {
      if (process == 1) sent.emplace_back(words);
      return process == 1 && takes_one(spoiled_, fates_, words) ? fate_ : Fate::answer;
    };
    ours.emplace(engine, server, 1, options);
    Options theirs = options;
    theirs.max_connections = 100;
    others.emplace(engine, server, 2, theirs);
  }

  // The next so many of our commands with such a word are refused; our next so many queries meet with that fate.
  void refuse(std::string_view word, std::string state, int times = many) {
    refused_ = word;
    state_ = std::move(state);
    refusals_ = times;
  }
  void spoil(std::string_view word, Fate fate, int times = many) {
    spoiled_ = word;
    fate_ = fate;
    fates_ = times;
  }
  void heal() {
    refusals_ = fates_ = 0;
    server.release_held();
  }
  [[nodiscard]] int refused() const { return many - refusals_; }

  // The words of the statements that try for a lock, wait for it in the server, and give it back.
  [[nodiscard]] std::string_view try_word() const { return word({".acquire", "fence.try", "row_lock.try_lock"}); }
  [[nodiscard]] std::string_view wait_word() const { return word({".acquire", ".lock_slice", "row_lock.lock"}); }
  [[nodiscard]] std::string_view release_word() const { return word({".release", "fence.unlock", "commit"}); }
  [[nodiscard]] bool of_rows() const {
    return options.strategy == Strategy::table || options.strategy == Strategy::optimistic;
  }

  [[nodiscard]] std::unique_ptr<Attempt> acquire(const std::string& name, bool wait = false) {
    auto attempt = ours->contend(name, wait);
    engine.run();
    return attempt;
  }
  [[nodiscard]] std::unique_ptr<Attempt> taken_by_others(const std::string& name) {
    auto attempt = others->contend(name, false);
    engine.run();
    EXPECT_TRUE(attempt->grant);
    return attempt;
  }
  // "granted", "busy", a word for the error, or "nothing".
  [[nodiscard]] static std::string said(const Attempt& attempt) {
    if (attempt.grant) return "granted";
    if (attempt.failure) return word_of(attempt.failure->code);
    return attempt.busy_reports > 0 ? "busy" : "nothing";
  }
  // "released", "not ours", a word for the error, or "nothing".
  [[nodiscard]] std::string release(Client& client, const Attempt& attempt, std::chrono::nanoseconds time = 4s) {
    const auto said = std::make_shared<std::string>("nothing");
    client.backend->release(*attempt.grant, [said](const ReleaseOutcome& outcome) {
      EXPECT_EQ(*said, "nothing") << "answered twice";
      *said = word_of(outcome);
    });
    engine.advance(time);
    return *said;
  }
  // Answers arrive later: "x released", "x not ours", "x renewed", "x lost", "x unknown", ...
  void give_back(const Attempt& attempt) {
    ours->backend->release(*attempt.grant, [this, name = attempt.request.name](const ReleaseOutcome& outcome) {
      answers.push_back(name + " " + word_of(outcome));
    });
  }
  void renew(const Attempt& attempt) { renew(*ours, attempt); }
  void renew(Client& client, const Attempt& attempt) {
    client.backend->renew(*attempt.grant, [this, name = attempt.request.name](const RenewOutcome& outcome) {
      using Status = RenewOutcome::Status;
      answers.push_back(name + " " +
                        (outcome.status == Status::renewed ? "renewed"
                         : outcome.status == Status::lost  ? "lost"
                                                           : word_of(outcome.failure.code)));
    });
  }
  [[nodiscard]] Words take_answers() { return std::exchange(answers, {}); }
  // Holders and waiters.
  [[nodiscard]] std::size_t owners(const std::string& name) {
    if (options.strategy == Strategy::for_update) return server.sessions_of_row(name).size();
    if (options.strategy == Strategy::advisory) {
      return server.sessions_of_key(lock_key(options, name).parameter).size();
    }
    return server.holders_of_rows(options.strategy == Strategy::table ? "lease" : "optimistic", name).size();
  }
  // Gives up, and then nothing of it is left.
  void expect_gone(std::unique_ptr<Attempt> attempt) {
    const std::string name = attempt->request.name;
    attempt.reset();
    engine.advance(options.lease + 2s);
    EXPECT_EQ(owners(name), 0U);
  }
  [[nodiscard]] static std::string word_of(const ReleaseOutcome& outcome) {
    using Status = ReleaseOutcome::Status;
    if (outcome.status == Status::released) return "released";
    return outcome.status == Status::not_owner ? "not ours" : word_of(outcome.failure.code);
  }
  [[nodiscard]] static std::string word_of(std::error_code code) {
    for (const auto& [known, word] :
         {std::pair(errc::unavailable, "unavailable"), std::pair(errc::ambiguous, "unknown"),
          std::pair(errc::access_denied, "denied"), std::pair(errc::protocol, "protocol"),
          std::pair(errc::unsupported, "unsupported"), std::pair(errc::invalid_argument, "invalid")}) {
      if (code == known) return word;
    }
    return code.message();
  }

  test::ManualEngine engine;
  FakePostgres server{engine};
  Options options;
  std::function<bool(const Command&)> refuses;  // where not all with that word are
  Words sent;                                   // by us: the words of each query
  std::optional<Client> ours;
  std::optional<Client> others;
  Words answers;

 private:
  static constexpr int many = 1'000'000;

  [[nodiscard]] std::string_view word(const std::array<std::string_view, 3>& words) const {
    return of_rows() ? words[0] : words[options.strategy == Strategy::advisory ? 1 : 2];
  }
  [[nodiscard]] static bool takes_one(std::string_view wanted, int& left, std::string_view words) {
    return left > 0 && words.find(wanted) != std::string_view::npos && left-- > 0;
  }

  std::string_view refused_;
  std::string state_;
  int refusals_ = 0;
  std::string_view spoiled_;
  Fate fate_{};
  int fates_ = 0;
};

// Strategies whose locks live in sessions of the server.
class SessionsTest : public BackendTest {
 protected:
  SessionsTest() { server.wire().records = true; }

  [[nodiscard]] bool is_advisory() const { return options.strategy == Strategy::advisory; }
  // Our queries with such a command.
  [[nodiscard]] std::vector<FakeQuery> queries(std::string_view word) {
    std::vector<FakeQuery> found;
    for (const FakeQuery& query : server.wire().queries) {
      const bool has = std::any_of(query.commands.begin(), query.commands.end(), [&](const Command& each) {
        return (each.statement != nullptr ? each.statement->word : each.text).find(word) != std::string::npos;
      });
      if (query.process == 1 && has) found.push_back(query);
    }
    return found;
  }
  // Another client has the lock first.
  [[nodiscard]] std::unique_ptr<Attempt> granted_after_a_wait(const std::string& name) {
    const auto holder = taken_by_others(name);
    auto attempt = acquire(name, true);
    EXPECT_EQ(said(*attempt), "busy");
    EXPECT_EQ(release(*others, *holder, 0s), "released");
    EXPECT_TRUE(attempt->grant);
    return attempt;
  }
};

[[nodiscard]] inline std::string name_of_strategy(const testing::TestParamInfo<Strategy>& info) {
  return info.param == Strategy::for_update ? "for_update" : std::string(to_string(info.param));
}

}  // namespace dlock::postgres
