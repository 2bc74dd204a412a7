// A memory store, a clock, and the reports to two clients.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include <dlock/clock.hpp>

#include "backends/memory/memory_store.hpp"

namespace dlock::memory {

using namespace std::chrono_literals;

// The store's reports to one client.
struct Reports {
  [[nodiscard]] MemoryStore::OnAnswer on_answer(const LockRequest& request) {
    return [this, owner = request.owner](const MemoryStore::Answer& answer) {
      news.push_back((answer.granted ? "granted " : "first ") + std::to_string(owner.low()));
      last = answer;
      if (answer.granted) last_token = answer.token;
    };
  }
  [[nodiscard]] MemoryStore::OnChange on_change() {
    return [this] { news.emplace_back("freed"); };
  }

  std::vector<std::string> news;
  MemoryStore::Answer last;
  FencingToken last_token;
};

class MemoryStoreTest : public testing::Test {
 protected:
  static LockRequest request(std::uint64_t owner, std::chrono::nanoseconds lease = 30s, std::string name = "lock",
                             std::string holder = "host:1:a") {
    return {.name = std::move(name), .owner = OwnerId(0, owner), .holder = std::move(holder), .lease = lease};
  }
  MemoryStore::Answer try_acquire(std::uint64_t owner, std::chrono::nanoseconds lease = 30s) {
    return store.try_acquire(request(owner, lease), 0s, clock);
  }
  MemoryStore::Answer enqueue(std::uint64_t owner, std::chrono::nanoseconds lease = 30s) {
    return enqueue(request(owner, lease), a);
  }
  MemoryStore::Answer enqueue(const LockRequest& request, Reports& reports) {
    return store.enqueue(request, reports.on_answer(request), clock);
  }
  bool release(std::uint64_t owner) { return store.release(LockKind::lock, "lock", OwnerId(0, owner), clock); }
  bool renew(std::uint64_t owner, std::chrono::nanoseconds lease = 30s) {
    return store.renew({.name = "lock", .owner = OwnerId(0, owner), .token = {}, .valid_until = {}, .lease = lease},
                       clock);
  }

  ManualClock clock;
  MemoryStore store;
  Reports a;
  Reports b;
};

}  // namespace dlock::memory
