// What the strategies of the backend work with, against a real server, driven from a test's own thread.
//
//   LiveServices services(server.url("schema=mine"));
//   EXPECT_FALSE(services.set_up());
//   EXPECT_TRUE(services.inspect("name").value().held);
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <dlock/clock.hpp>
#include <dlock/spi/backend.hpp>
#include <dlock/spi/url.hpp>

#include "backends/postgres/administration/diagnosis.hpp"
#include "backends/postgres/administration/inspection.hpp"
#include "backends/postgres/libpq/libpq_connection.hpp"
#include "backends/postgres/options.hpp"
#include "backends/postgres/schema/schema.hpp"
#include "backends/postgres/sessions/commands.hpp"
#include "engine/thread_engine.hpp"
#include "live_connection.hpp"
#include "torture/rig/hang_guard.hpp"
#include "util/event.hpp"
#include "util/process.hpp"

namespace dlock::test {

class LiveServices final {
 public:
  using Made = std::vector<std::string>;

  explicit LiveServices(const std::string& url, std::chrono::nanoseconds response_timeout = 20s)
      : options_(postgres::parse_options({.url = Url::parse(url),
                                          .holder = "host:1:test",
                                          .lease = 30s,
                                          .response_timeout = response_timeout,
                                          .connect_timeout = 20s})),
        engine_(engine::ThreadEngine::start(boottime_clock(), util::kernel_random)),
        dialling_{options_, postgres::libpq_connections(), options_.connect_timeout, options_.response_timeout} {
    on_engine([&] {
      schema_.emplace(*engine_, options_, dialling_);
      commands_.emplace(*engine_, options_, dialling_, *schema_, observer_);
      inspection_.emplace(*commands_);
    });
  }
  ~LiveServices() {
    on_engine([&] {
      inspection_.reset();
      commands_.reset();
      schema_.reset();
    });
    engine_->stop();
  }
  LiveServices(const LiveServices&) = delete;
  LiveServices& operator=(const LiveServices&) = delete;

  [[nodiscard]] const postgres::Options& options() const { return options_; }

  // Why not, or nothing.
  [[nodiscard]] std::optional<Failure> set_up() {
    auto result = ask<bool>([&](auto done) {
      schema_->set_up(commands_->answer_by(), [done](std::optional<Failure> why_not) {
        done(why_not ? Result<bool>(*std::move(why_not)) : Result<bool>(true));
      });
    });
    return result.ok() ? std::nullopt : std::optional(result.failure());
  }
  [[nodiscard]] Result<Made> initialize() {
    return ask<Made>([&](auto done) { schema_->initialize(commands_->answer_by(), std::move(done)); });
  }
  [[nodiscard]] Result<LockInfo> inspect(const std::string& name, LockKind kind = LockKind::lock) {
    return ask<LockInfo>([&](auto done) { inspection_->inspect(kind, name, std::move(done)); });
  }
  [[nodiscard]] Result<std::vector<LockInfo>> list(LockKind kind = LockKind::lock) {
    return ask<std::vector<LockInfo>>([&](auto done) { inspection_->list(kind, std::move(done)); });
  }
  [[nodiscard]] Result<bool> break_lock(const std::string& name, LockKind kind = LockKind::lock) {
    return ask<bool>([&](auto done) { inspection_->break_lock(kind, name, std::move(done)); });
  }
  [[nodiscard]] std::vector<Finding> diagnose() {
    return ask<std::vector<Finding>>([&](auto done) { postgres::diagnose(*commands_, std::move(done)); }).value();
  }

  // A single statement, as the row strategies run theirs.
  [[nodiscard]] LiveConnection::Answer run(const postgres::Statement& statement,
                                           std::vector<postgres::Parameter> params) {
    auto answer = std::make_shared<LiveAnswer>();
    on_engine([&] {
      commands_->run({.commands = {{.statement = &statement, .params = std::move(params)}},
                      .done = [answer](const auto& outcome, const auto& results) { answer->set(outcome, results); }},
                     commands_->answer_by());
    });
    return answer;
  }

 private:
  template <class T>
  Result<T> ask(const std::function<void(Backend::Handler<T>)>& question) {
    struct Answer {
      util::Event arrived;
      std::optional<Result<T>> result;
    };
    const auto answer = std::make_shared<Answer>();
    on_engine([&] {
      question([answer](Result<T> result) {
        answer->result = std::move(result);
        answer->arrived.set();
      });
    });
    if (!answer->arrived.wait(rig::hang_guard)) throw std::runtime_error("hang: no answer");
    return *std::move(answer->result);
  }
  void on_engine(const std::function<void()>& task) {
    auto done = std::make_shared<util::Event>();
    if (!engine_->submit([&task, done] {
          task();
          done->set();
        })) {
      throw std::runtime_error("the engine was stopped");
    }
    if (!done->wait(rig::hang_guard)) throw std::runtime_error("hang: the engine is blocked");
  }

  struct Unimpressed final : common::ConnectionObserver {
    void connected() override {}
    void broken(const Failure& /*why*/) override {}
  };

  const postgres::Options options_;
  std::shared_ptr<engine::Engine> engine_;
  const postgres::Dialling dialling_;
  Unimpressed observer_;
  std::optional<postgres::Schema> schema_;
  std::optional<postgres::Commands> commands_;
  std::optional<postgres::Inspection> inspection_;
};

}  // namespace dlock::test
