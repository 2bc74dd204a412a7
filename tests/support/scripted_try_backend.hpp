// A TryBackend whose tries and watches are answered by the test.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/try_backend.hpp>

namespace dlock::test {

class ScriptedTryBackend final : public TryBackend {
 public:
  ScriptedTryBackend(BackendHost& host, TryPolicy policy) : TryBackend(host, policy) {}

  ~ScriptedTryBackend() override {
    if (on_destruction) on_destruction();
  }

  [[nodiscard]] Capabilities capabilities() const noexcept override { return {.backend = "scripted"}; }
  void try_acquire(const LockRequest& request, TryHandler done) override {
    tried.push_back(request);
    tries.push_back(std::move(done));
  }
  [[nodiscard]] std::unique_ptr<Watch> watch(LockKind /*kind*/, const std::string&,
                                             std::function<void()> changed) override {
    if (!can_watch) return nullptr;
    watches.push_back(changed);
    return std::make_unique<CountedWatch>(*this);
  }
  void renew(const Grant&, RenewHandler) override { ADD_FAILURE(); }
  void release(const Grant&, ReleaseHandler done) override { done({.status = ReleaseOutcome::Status::released}); }

  bool can_watch = true;
  std::function<void()> on_destruction;
  std::vector<LockRequest> tried;
  std::vector<TryHandler> tries;
  std::vector<std::function<void()>> watches;
  int live_watches = 0;
  bool in_changed = false;

 private:
  class CountedWatch final : public Watch {
   public:
    explicit CountedWatch(ScriptedTryBackend& backend) : backend_(backend) { ++backend_.live_watches; }
    ~CountedWatch() override {
      --backend_.live_watches;
      EXPECT_FALSE(backend_.in_changed) << "a watch was destroyed inside its own callback";
    }

   private:
    ScriptedTryBackend& backend_;
  };
};

}  // namespace dlock::test
