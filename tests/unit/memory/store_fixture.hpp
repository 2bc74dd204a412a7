// A memory store, a clock, and two sessions that write down what they are told.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include <dlock/clock.hpp>

#include "backends/memory/memory_store.hpp"

namespace dlock::memory {

using namespace std::chrono_literals;

struct RecordingSession final : Session {
  RecordingSession(MemoryStore& store, std::string holder) : Session(std::move(holder)), store_(store) {
    store_.attach(*this);
  }
  ~RecordingSession() { store_.detach(*this); }

  void granted(LockKind /*kind*/, const std::string& /*name*/, const OwnerId& owner, FencingToken token,
               TimePoint since) override {
    news.push_back("granted " + std::to_string(owner.low()));
    last_token = token;
    last_since = since;
  }
  void first_in_line(LockKind /*kind*/, const std::string& /*name*/, const OwnerId& owner,
                     TimePoint lease_ends) override {
    news.push_back("first " + std::to_string(owner.low()));
    last_lease_ends = lease_ends;
  }
  void freed(std::uint64_t watch) override { news.push_back("freed " + std::to_string(watch)); }
  void killed() override { news.push_back("killed"); }

  std::vector<std::string> news;
  FencingToken last_token;
  TimePoint last_since;
  TimePoint last_lease_ends;

 private:
  MemoryStore& store_;
};

class MemoryStoreTest : public testing::Test {
 protected:
  static LockRequest request(std::uint64_t owner, std::chrono::nanoseconds lease = 30s, std::string name = "lock") {
    return {.name = std::move(name), .owner = OwnerId(0, owner), .holder = "host:1:a", .lease = lease};
  }
  MemoryStore::Answer try_acquire(std::uint64_t owner, std::chrono::nanoseconds lease = 30s) {
    return store.try_acquire(request(owner, lease), 0s, a, clock);
  }
  MemoryStore::Answer enqueue(std::uint64_t owner, std::chrono::nanoseconds lease = 30s) {
    return store.enqueue(request(owner, lease), a, clock);
  }
  bool release(std::uint64_t owner) { return store.release(LockKind::lock, "lock", OwnerId(0, owner), clock); }
  bool renew(std::uint64_t owner, std::chrono::nanoseconds lease = 30s) {
    return store.renew({.name = "lock", .owner = OwnerId(0, owner), .token = {}, .valid_until = {}, .lease = lease},
                       clock);
  }

  ManualClock clock;
  MemoryStore store;
  RecordingSession a{store, "host:1:a"};
  RecordingSession b{store, "host:1:b"};
};

}  // namespace dlock::memory
