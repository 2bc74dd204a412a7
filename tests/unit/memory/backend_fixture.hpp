// Memory backends on one manual engine, with everything that they report written down.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/memory/memory_backend.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::memory {

using namespace std::chrono_literals;

using test::Attempt;

// Decides by a function that the test may change at any time.
struct ScriptedFaults final : FaultInjector {
  Delivery plan(const Message& message) override { return script ? script(message) : Delivery{}; }
  std::function<Delivery(const Message&)> script;
};

class BackendTest : public testing::Test {
 protected:
  BackendTest() { store->faults().inject(faults); }

  std::unique_ptr<MemoryBackend> make(const std::string& label, Strategy strategy = Strategy::queue) {
    const BackendConfig config{
        .url = {}, .holder = "host:1:" + label, .lease = 30s, .response_timeout = 2s, .connect_timeout = 5s};
    return std::make_unique<MemoryBackend>(host, config, store, strategy);
  }

  std::unique_ptr<Attempt> contend(MemoryBackend& backend, bool wait = true, std::chrono::nanoseconds lease = 30s) {
    auto attempt = std::make_unique<Attempt>();
    attempt->request = {
        .name = "lock", .owner = host.new_owner_id(), .holder = "host:1:x", .lease = lease, .wait = wait};
    attempt->contention = backend.contend(attempt->request, *attempt);
    engine.run();
    return attempt;
  }

  ReleaseOutcome::Status release(MemoryBackend& backend, const Grant& grant) {
    std::optional<ReleaseOutcome::Status> status;
    backend.release(grant, [&](const ReleaseOutcome& outcome) { status = outcome.status; });
    if (!status) engine.advance(2s);
    engine.run();
    EXPECT_TRUE(status) << "no answer within the response timeout";
    return *status;
  }

  RenewOutcome renew(MemoryBackend& backend, const Grant& grant) {
    std::optional<RenewOutcome> answer;
    backend.renew(grant, [&](const RenewOutcome& outcome) { answer = outcome; });
    if (!answer) engine.advance(2s);
    EXPECT_TRUE(answer) << "no answer within the response timeout";
    return *answer;
  }

  std::size_t residue() { return store->residue("lock", engine.clock()); }

  // From now on, every message of this kind is treated so.
  void disturb(Operation operation, Delivery delivery) {
    faults->script = [operation, delivery](const Message& message) {
      return message.operation == operation ? delivery : Delivery{};
    };
  }
  void disturb_everything(Delivery delivery) {
    faults->script = [delivery](const Message&) { return delivery; };
  }
  void heal() { faults->script = nullptr; }

  test::ManualEngine engine;
  test::RecordingHost host{engine};
  std::shared_ptr<MemoryStore> store = std::make_shared<MemoryStore>();
  std::shared_ptr<ScriptedFaults> faults = std::make_shared<ScriptedFaults>();
};

}  // namespace dlock::memory
