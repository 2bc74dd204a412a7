// A Redis backend on a manual engine, with a server that the test plays and everything that is reported written down.
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
    return std::make_unique<RedisBackend>(host, parse_options(config), server.wires());
  }

  std::unique_ptr<Attempt> contend(bool wait, std::chrono::nanoseconds lease = 30s) {
    auto attempt = std::make_unique<Attempt>();
    attempt->request = {
        .name = "lock", .owner = host.new_owner_id(), .holder = "host:1:test", .lease = lease, .wait = wait};
    attempt->contention = backend->contend(attempt->request, *attempt);
    engine.run();
    return attempt;
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
  void close() {
    backend->close([this] { closed = true; });
  }

  // Waits for locks of different names.
  std::vector<std::unique_ptr<Attempt>> contend_many(std::size_t count) {
    std::vector<std::unique_ptr<Attempt>> attempts(count);
    for (std::size_t i = 0; i < count; ++i) {
      attempts[i] = std::make_unique<Attempt>();
      attempts[i]->request = {.name = "lock/" + std::to_string(i),
                              .owner = host.new_owner_id(),
                              .holder = "host:1:test",
                              .lease = 30s,
                              .wait = true};
      attempts[i]->contention = backend->contend(attempts[i]->request, *attempts[i]);
    }
    engine.run();
    return attempts;
  }

  // Answers the scripts by these, and subscriptions with yes.
  struct Answers {
    std::string acquire = {};
    std::string renew = {};
    std::string release = released();
  };
  void set(Answers answers) {
    server.answer = [answers = std::move(answers)](FakeWire&, const Words& command) -> std::string {
      if (command.front() == "SUBSCRIBE") return subscribed(command[1]);
      if (command.front() == "PING") return "+PONG\r\n";
      const Script* script = script_in(command);
      if (script == &acquire_script()) return answers.acquire;
      if (script == &renew_script()) return answers.renew;
      return script == &release_script() ? answers.release : "";
    };
  }
  static std::string subscribed(const std::string& channel) { return about_channel("subscribe", channel); }
  // The value that an acquire was sent with.
  static std::string value_in(const Words& acquire) { return acquire.at(7); }
  static std::string mode_in(const Words& acquire) { return acquire.at(9); }
  static std::string ticket_in(const Words& acquire) { return acquire.at(13); }

  test::ManualEngine engine;
  test::RecordingHost host{engine};
  FakeServer server;
  std::unique_ptr<RedisBackend> backend = make();
  std::optional<ReleaseOutcome> release_answer;
  std::optional<RenewOutcome> renewed;
  bool closed = false;
};

}  // namespace dlock::redis
