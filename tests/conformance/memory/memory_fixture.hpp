// The memory backend, and clients that exchange messages with its store, as subjects of the suite. Calls within a
// process are always answered; messages can be disturbed in all ways that the suite knows.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <dlock/conformance/fixture.hpp>

#include "backends/memory/memory_backend.hpp"
#include "backends/memory/memory_store.hpp"
#include "tests/support/messages/faults.hpp"
#include "tests/support/mutants/mutation.hpp"

namespace dlock::conformance {

class MemoryFixture final : public Fixture {
 public:
  explicit MemoryFixture(memory::Strategy strategy);
  // By messages, and broken if so wanted.
  MemoryFixture(memory::Strategy strategy, mutants::Mutation mutation);
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

  const std::string place_;
  const std::string url_;
  const std::shared_ptr<memory::MemoryStore> store_;
  const std::shared_ptr<Disturbance> disturbance_;  // of messages
  const std::shared_ptr<messages::Faults> faults_ = std::make_shared<messages::Faults>();
  BackendFactory backend_;
  std::shared_ptr<ManualClock> clock_;
  std::shared_ptr<Clock> real_clock_ = boottime_clock();
  int clients_ = 0;
};

}  // namespace dlock::conformance
