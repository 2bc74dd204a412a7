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

class BackendTest : public testing::Test {
 protected:
  std::unique_ptr<MemoryBackend> make(Strategy strategy = Strategy::queue) {
    return std::make_unique<MemoryBackend>(host, store, strategy);
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
    engine.run();
    EXPECT_TRUE(status);
    return *status;
  }

  RenewOutcome renew(MemoryBackend& backend, const Grant& grant) {
    std::optional<RenewOutcome> answer;
    backend.renew(grant, [&](const RenewOutcome& outcome) { answer = outcome; });
    EXPECT_TRUE(answer);
    return *answer;
  }

  std::size_t residue() { return store->residue("lock", engine.clock()); }

  test::ManualEngine engine;
  test::RecordingHost host{engine};
  std::shared_ptr<MemoryStore> store = std::make_shared<MemoryStore>();
};

}  // namespace dlock::memory
