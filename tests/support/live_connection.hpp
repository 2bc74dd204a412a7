// A backend's connection to a real server, on the test's own thread.
//
//   using LiveConnection = BasicLiveConnection<mysql::parse_options, mysql::libmariadb_connections>;
//   LiveConnection connection(server.url());
//   ASSERT_TRUE(connection.open());
//   EXPECT_EQ(connection.ask("SELECT 1").value(), "1");
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <dlock/clock.hpp>
#include <dlock/spi/backend.hpp>
#include <dlock/spi/url.hpp>

#include "backends/common/sql/connection.hpp"
#include "engine/thread_engine.hpp"
#include "torture/rig/hang_guard.hpp"
#include "util/process.hpp"

namespace dlock::test {

using namespace std::chrono_literals;

// An answer that may still be missing.
class LiveAnswer {
 public:
  void set(const sql::Outcome& outcome, const sql::Results& results) { promise_.set_value({outcome, results}); }
  [[nodiscard]] const sql::Outcome& outcome() const { return answer().first; }
  [[nodiscard]] const sql::Results& results() const { return answer().second; }
  [[nodiscard]] std::string value() const {
    return results().empty() ? outcome().failure.detail : results().back().text(0, 0);
  }

 private:
  using Both = std::pair<sql::Outcome, sql::Results>;

  [[nodiscard]] const Both& answer() const {
    if (answer_.wait_for(rig::hang_guard) != std::future_status::ready) throw std::runtime_error("hang: no answer");
    return answer_.get();
  }

  std::promise<Both> promise_;
  const std::shared_future<Both> answer_{promise_.get_future()};
};

// parse_options, connections: those of the service.
template <auto parse_options, auto connections>
class BasicLiveConnection final : private sql::Connection::Listener {
 public:
  using Answer = std::shared_ptr<LiveAnswer>;

  explicit BasicLiveConnection(const std::string& url, sql::Purpose purpose = {})
      : options_(parse_options({.url = Url::parse(url),
                                .holder = "host:1:test",
                                .lease = 30s,
                                .response_timeout = 5s,
                                .connect_timeout = 20s})),
        engine_(engine::ThreadEngine::start(boottime_clock(), util::kernel_random)) {
    on_engine([&] { connection_ = connections()(*engine_, options_, purpose, *this); });
  }
  ~BasicLiveConnection() {
    on_engine([&] { connection_.reset(); });
    engine_->stop();
  }

  // Returns whether the connection was established.
  [[nodiscard]] bool open(std::chrono::nanoseconds within = 20s) {
    on_engine([&] { connection_->open(saturating_add(engine_->now(), within)); });
    await([&] { return ready_ || lost_; });
    return ready_;
  }
  [[nodiscard]] Answer ask(sql::Query query) {
    auto answer = std::make_shared<LiveAnswer>();
    query.done = [answer](const sql::Outcome& outcome, const sql::Results& results) { answer->set(outcome, results); };
    on_engine([&] { connection_->send(std::move(query)); });
    return answer;
  }
  [[nodiscard]] Answer ask(const std::string& sql, std::vector<sql::Parameter> params = {}) {
    return ask({.commands = {{.text = sql, .params = std::move(params)}}});
  }
  [[nodiscard]] Answer ask(const sql::Statement& statement, std::vector<sql::Parameter> params = {}) {
    return ask({.commands = {{.statement = &statement, .params = std::move(params)}}});
  }
  void break_off() {
    on_engine([&] { connection_->break_off({errc::unavailable, "given up"}); });
  }
  // Starts to connect, and destroys the connection meanwhile.
  void open_and_destroy() {
    on_engine([&] {
      connection_->open(saturating_add(engine_->now(), 20s));
      connection_.reset();
    });
  }
  [[nodiscard]] const sql::ServerInfo& server() const { return info_; }
  // Waits until the connection ends.
  [[nodiscard]] Failure lost() {
    await([&] { return lost_.has_value(); });
    return *lost_;
  }
  [[nodiscard]] std::string notification() {
    await([&] { return !notifications_.empty(); });
    const std::scoped_lock lock(mutex_);
    return notifications_.front();
  }

 private:
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
  void connection_ready() override {
    const std::scoped_lock lock(mutex_);
    info_ = connection_->server();
    ready_ = true;
    changed_.notify_all();
  }
  void connection_lost(const Failure& why) override {
    const std::scoped_lock lock(mutex_);
    lost_ = why;
    changed_.notify_all();
  }
  void connection_notified(const std::string& channel, const std::string& payload) override {
    const std::scoped_lock lock(mutex_);
    std::string text = channel;
    notifications_.push_back(text.append(":").append(payload));
    changed_.notify_all();
  }
  template <class Condition>
  void await(Condition condition) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, rig::hang_guard, condition)) throw std::runtime_error("hang: nothing was heard");
  }

  const decltype(parse_options({})) options_;
  std::shared_ptr<engine::Engine> engine_;
  std::unique_ptr<sql::Connection> connection_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ready_ = false;
  std::optional<Failure> lost_;
  sql::ServerInfo info_;
  std::vector<std::string> notifications_;
};

}  // namespace dlock::test
