// The memory backend as a subject of the suite: a store of its own, and all hooks.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <dlock/conformance/fixture.hpp>

#include "backends/memory/memory_backend.hpp"
#include "backends/memory/memory_store.hpp"

namespace dlock::conformance {

class MemoryFixture final : public Fixture {
 public:
  explicit MemoryFixture(std::string_view strategy, BackendFactory backend = memory::make_memory_backend);
  ~MemoryFixture() override;

  [[nodiscard]] std::string url() const override { return url_; }
  [[nodiscard]] Client make_client(ClientOptions options, Link link) override;
  [[nodiscard]] std::optional<Missing> missing(Feature feature) const override;
  [[nodiscard]] std::shared_ptr<ManualClock> clock() override;
  void kill_hold(LockKind kind, const std::string& name) override;
  void kill_session(Client& client) override;
  void stall() override;
  void resume() override;
  void delay_answers(std::chrono::nanoseconds by) override;
  void cut() override;
  void heal() override;
  void lose_next_answer() override;
  [[nodiscard]] std::size_t residue(LockKind kind, const std::string& name) override;
  [[nodiscard]] std::uint64_t requests() override;

 private:
  class Disturbance;
  [[nodiscard]] const Clock& service_clock() const;

  std::string place_;
  std::string url_;
  BackendFactory backend_;
  std::shared_ptr<memory::MemoryStore> store_;
  std::shared_ptr<Disturbance> disturbance_;
  std::shared_ptr<ManualClock> clock_;
  std::shared_ptr<Clock> real_clock_ = boottime_clock();
  int clients_ = 0;
};

}  // namespace dlock::conformance
