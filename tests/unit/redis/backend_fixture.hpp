// A Redis backend on a manual engine, with a model of a server. What the model does not answer the test answers.
#pragma once

#include <gtest/gtest.h>
#include <strings.h>

#include "backends/redis/redis_backend.hpp"
#include "fake_server.hpp"
#include "tests/simulation/redis/redis_model.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::redis {

using namespace std::chrono_literals;

using test::Attempt;

class BackendTest : public testing::Test {
 protected:
  BackendTest() {
    model.publish = [this](const std::string& channel, const std::string& text) {
      server.publish(channel, text);
      return server.subscribers();
    };
    serve();
  }
  ~BackendTest() override { server.answer = nullptr; }  // what a test has put there is gone

  std::unique_ptr<RedisBackend> make(const std::string& url = "redis://localhost") {
    return std::make_unique<RedisBackend>(host, options_for(url, 30s), server.streams());
  }

  // instead: the answer that replaces the model's, for a command that the model then never gets. Empty: none.
  using Instead = std::function<std::optional<std::string>(FakeStream& from, const Words& command)>;
  void serve(Instead instead = nullptr) {
    server.answer = [this, instead = std::move(instead)](FakeStream& from, const Words& command) {
      const auto reply = instead ? instead(from, command) : std::nullopt;
      return reply ? *reply : answer(command);
    };
  }
  // Answers commands of this name, or this script's, by f instead. "script": all of dlock's. Empty: not at all.
  void answer_by(const std::string& what, std::function<std::string(FakeStream& from, const Words& command)> f) {
    serve([what, f = std::move(f)](FakeStream& from, const Words& command) {
      return is(command, what) ? std::optional(f(from, command)) : std::nullopt;
    });
  }
  void answer_instead(const std::string& what, const std::string& reply) {
    answer_by(what, [reply](FakeStream&, const Words&) { return reply; });
  }
  [[nodiscard]] static bool is(const Words& command, const std::string& what) {
    const Script* const script = script_in(command);
    return command.front() == what || (script != nullptr && (what == "script" || script->name == what));
  }

  // Another client holds the lock. Nobody announces its release.
  void hold(const std::string& name = "lock", std::chrono::milliseconds lease = 24h) {
    (void)model.run({"SET", "dlock:" + name, "another", "PX", std::to_string(lease.count())});
  }
  void free(const std::string& name = "lock") { (void)model.run({"DEL", "dlock:" + name}); }
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
  void queue_another(const std::string& value = "another:1", bool dead = false) {
    const auto last = model.run({"ZCARD", queue_key}).integer;
    (void)model.run({"ZADD", queue_key, std::to_string(last + 1), value});
    (void)model.run({"ZADD", alive_key, std::to_string((dead ? 2 : -2) * model.now_ms()), value});
  }
  void queue_others(int count, bool dead = false) {
    for (int i = 0; i < count; ++i) queue_another("another" + std::to_string(i) + ":1", dead);
  }

  std::unique_ptr<Attempt> contend(const test::Wish& wish) {
    auto attempt = test::begin_attempt(*backend, host, wish);
    engine.run();
    return attempt;
  }
  std::unique_ptr<Attempt> contend(bool wait, std::chrono::nanoseconds lease = 30s) {
    return contend(test::Wish{.lease = lease, .wait = wait});
  }
  // Tries for a lock that is free.
  std::unique_ptr<Attempt> take_another() {
    return contend({.name = "free/" + std::to_string(++taken_), .wait = false});
  }
  // Waits for locks of different names, which others hold.
  std::vector<std::unique_ptr<Attempt>> contend_many(std::size_t count) {
    std::vector<std::unique_ptr<Attempt>> attempts(count);
    for (std::size_t i = 0; i < count; ++i) {
      hold("lock/" + std::to_string(i));
      attempts[i] = contend({.name = "lock/" + std::to_string(i), .lease = 30s});
    }
    return attempts;
  }

  std::optional<ReleaseOutcome::Status> release(const Attempt& attempt, std::chrono::nanoseconds within = 0s) {
    released.reset();
    backend->release(*attempt.grant, [this](const ReleaseOutcome& outcome) { released = outcome.status; });
    engine.advance(within);
    return released;
  }
  std::optional<RenewOutcome::Status> renew(const Attempt& attempt, std::chrono::nanoseconds within = 0s) {
    renewed.reset();
    backend->renew(*attempt.grant, [this](const RenewOutcome& outcome) { renewed = outcome; });
    engine.advance(within);
    return renewed ? std::optional(renewed->status) : std::nullopt;
  }

  [[nodiscard]] std::string channel() const {
    for (const Words& command : server.commands) {
      if (command.front() == "SUBSCRIBE") return command.at(1);
    }
    return "";
  }
  [[nodiscard]] std::int64_t sent(const std::string& verb) const {
    return std::ranges::count_if(server.commands, [&](const Words& command) { return command.front() == verb; });
  }
  [[nodiscard]] std::size_t asked() const { return server.calls("acquire").size(); }
  [[nodiscard]] std::size_t asked_within(std::chrono::nanoseconds time) {
    const std::size_t before = asked();
    engine.advance(time);
    return asked() - before;
  }
  [[nodiscard]] int dialled_within(std::chrono::nanoseconds time) {
    const int before = server.dialled;
    engine.advance(time);
    return server.dialled - before;
  }

  test::ManualEngine engine;
  test::RecordingHost host{engine};
  FakeServer server;
  RedisModel model{[this] {
    return std::chrono::duration_cast<std::chrono::microseconds>(engine.now().time_since_epoch()) +
           1'760'000'000'000'000us;
  }};
  std::unique_ptr<RedisBackend> backend = make();
  std::optional<ReleaseOutcome::Status> released;
  std::optional<RenewOutcome> renewed;

 private:
  static constexpr const char* queue_key = "{dlock:lock}:dlq";
  static constexpr const char* alive_key = "{dlock:lock}:dla";

  [[nodiscard]] std::string answer(const Words& command) {
    const std::string& verb = command.front();
    for (const char* change : {"subscribe", "unsubscribe", "ssubscribe", "sunsubscribe"}) {
      if (strcasecmp(verb.c_str(), change) == 0) return about_channel(change, command[1]);
    }
    // A cluster of one node.
    if (verb == "CLUSTER") return lines("*1|*3|:0|:16383|*2|$0||:6379|");
    if (verb == "PING") return "+PONG\r\n";
    for (const char* by_default : {"AUTH", "SELECT", "CLIENT", "ROLE", "INFO", "PUBLISH"}) {
      if (verb == by_default) return "";
    }
    return bytes_of(model.run(command));
  }

  int taken_ = 0;
};

}  // namespace dlock::redis
