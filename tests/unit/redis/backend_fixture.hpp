// A Redis backend on a manual engine, with a server that the test plays, or that a model of Redis does.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/redis/redis_backend.hpp"
#include "backends/redis/requests/scripts.hpp"
#include "fake_server.hpp"
#include "tests/simulation/redis/redis_model.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::redis {

using namespace std::chrono_literals;

using test::Attempt;

class BackendTest : public testing::Test {
 protected:
  ~BackendTest() override { server.answer = nullptr; }  // what a test has put there is gone

  std::unique_ptr<RedisBackend> make(const std::string& url = "redis://localhost") {
    const BackendConfig config{
        .url = Url::parse(url), .holder = "host:1:test", .lease = 30s, .response_timeout = 2s, .connect_timeout = 5s};
    return std::make_unique<RedisBackend>(host, parse_options(config), server.streams());
  }

  struct Asked {
    std::string name = "lock";
    std::chrono::nanoseconds lease = 30s;
    bool wait = false;
    LockKind kind = LockKind::lock;
    Mode mode = Mode::exclusive;
    std::uint32_t permits = 1;
    std::string value = {};
  };
  std::unique_ptr<Attempt> contend(const Asked& asked) {
    auto attempt = std::make_unique<Attempt>();
    attempt->request = {.name = asked.name,
                        .owner = host.new_owner_id(),
                        .holder = "host:1:test",
                        .lease = asked.lease,
                        .wait = asked.wait,
                        .kind = asked.kind,
                        .mode = asked.mode,
                        .permits = asked.permits,
                        .value = asked.value};
    attempt->contention = backend->contend(attempt->request, *attempt);
    engine.run();
    return attempt;
  }
  std::unique_ptr<Attempt> contend(bool wait, std::chrono::nanoseconds lease = 30s) {
    return contend(Asked{.lease = lease, .wait = wait});
  }
  // Waits for locks of different names.
  std::vector<std::unique_ptr<Attempt>> contend_many(std::size_t count) {
    std::vector<std::unique_ptr<Attempt>> attempts(count);
    for (std::size_t i = 0; i < count; ++i) {
      attempts[i] = contend({.name = "lock/" + std::to_string(i), .wait = true});
    }
    return attempts;
  }

  void release(const Attempt& attempt) {
    release_answer.reset();
    backend->release(*attempt.grant, [this](const ReleaseOutcome& outcome) { release_answer = outcome; });
  }
  [[nodiscard]] std::optional<ReleaseOutcome::Status> release_status() const {
    return release_answer ? std::optional(release_answer->status) : std::nullopt;
  }
  void renew(const Attempt& attempt) {
    renewed.reset();
    backend->renew(*attempt.grant, [this](const RenewOutcome& outcome) { renewed = outcome; });
  }
  [[nodiscard]] std::optional<RenewOutcome::Status> renew_status() const {
    return renewed ? std::optional(renewed->status) : std::nullopt;
  }
  void close() {
    backend->close([this] { closed = true; });
  }

  // Answers the scripts by these, and subscriptions with yes.
  struct Answers {
    std::string acquire = {};
    std::string renew = {};
    std::string release = released();
  };
  void set(Answers answers) {
    server.answer = [answers = std::move(answers)](FakeStream&, const Words& command) -> std::string {
      if (command.front() == "SUBSCRIBE") return subscribed(command[1]);
      if (command.front() == "PING") return "+PONG\r\n";
      const Script* script = script_in(command);
      if (script == &acquire_script()) return answers.acquire;
      if (script == &renew_script()) return answers.renew;
      return script == &release_script() ? answers.release : "";
    };
  }
  static std::string subscribed(const std::string& channel) { return about_channel("subscribe", channel); }

  test::ManualEngine engine;
  test::RecordingHost host{engine};
  FakeServer server;
  std::unique_ptr<RedisBackend> backend = make();
  std::optional<ReleaseOutcome> release_answer;
  std::optional<RenewOutcome> renewed;
  bool closed = false;
};

// The server runs the scripts.
class ModelBackendTest : public BackendTest {
 protected:
  ModelBackendTest() {
    model.publish = [this](const std::string& channel, const std::string& text) {
      server.publish(channel, text);
      return server.subscribers();
    };
    serve();
  }

  // instead: the answer that replaces the model's, for a command that the model then never gets. Empty: none.
  using Instead = std::function<std::optional<std::string>(const Words& command)>;
  void serve(Instead instead = nullptr) {
    server.answer = [this, instead = std::move(instead)](FakeStream&, const Words& command) {
      const auto reply = instead ? instead(command) : std::nullopt;
      return reply ? *reply : answer(command);
    };
  }

  // Another client holds the lock. Nobody announces its release.
  void hold(const std::string& name = "lock", std::chrono::milliseconds lease = 24h) {
    (void)model.run({"SET", "dlock:" + name, "another", "PX", std::to_string(lease.count())});
  }
  void free() { (void)model.run({"DEL", "dlock:lock"}); }
  [[nodiscard]] std::string holder() { return model.run({"GET", "dlock:lock"}).text; }

  // The waiters' values, in order.
  [[nodiscard]] Words queue() {
    Words out;
    for (const Reply& each : model.run({"ZRANGE", queue_key, "0", "-1"}).elements) out.push_back(each.text);
    return out;
  }
  [[nodiscard]] bool is_first(const Attempt& attempt) {
    const Words waiters = queue();
    return !waiters.empty() && waiters.front().ends_with(attempt.request.owner.to_string());
  }
  // Whether the server will send a message to the first in line, and discard it if nobody receives that.
  [[nodiscard]] bool counts_on_messages() {
    return !model.run({"ZSCORE", alive_key, queue().at(0)}).text.starts_with('-');
  }
  // A release finds that waiter dead.
  void discard(const std::string& value) {
    for (const char* key : {queue_key, alive_key}) (void)model.run({"ZREM", key, value});
  }
  // Another client's waiter, which asks by itself, and does so later.
  void queue_another(const std::string& value = "another:1") {
    const auto last = model.run({"ZCARD", queue_key}).integer;
    (void)model.run({"ZADD", queue_key, std::to_string(last + 1), value});
    (void)model.run({"ZADD", alive_key, std::to_string(-2 * model.now_ms()), value});
  }
  [[nodiscard]] std::string channel() const {
    for (const Words& command : server.commands) {
      if (command.front() == "SUBSCRIBE") return command.at(1);
    }
    return "";
  }
  [[nodiscard]] std::size_t asked() const { return server.calls("acquire").size(); }
  [[nodiscard]] std::size_t asked_within(std::chrono::nanoseconds time) {
    const std::size_t before = asked();
    engine.advance(time);
    return asked() - before;
  }

  RedisModel model{[this] {
    return std::chrono::duration_cast<std::chrono::microseconds>(engine.now().time_since_epoch()) +
           1'760'000'000'000'000us;
  }};

 private:
  static constexpr const char* queue_key = "{dlock:lock}:dlq";
  static constexpr const char* alive_key = "{dlock:lock}:dla";

  [[nodiscard]] std::string answer(const Words& command) {
    const std::string& verb = command.front();
    if (verb == "SUBSCRIBE" || verb == "UNSUBSCRIBE") {
      return about_channel(verb == "SUBSCRIBE" ? "subscribe" : "unsubscribe", command[1]);
    }
    if (verb == "PING") return "+PONG\r\n";
    const bool by_default = verb == "CLIENT" || verb == "ROLE" || verb == "INFO" || verb == "PUBLISH";
    return by_default ? "" : bytes_of(model.run(command));
  }
};

}  // namespace dlock::redis
