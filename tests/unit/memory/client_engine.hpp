// One client's engine among several that a single thread drives together.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "tests/support/manual_engine.hpp"

namespace dlock::test {

// Forwards to the shared engine; only stopping is each client's own.
class ClientEngine final : public engine::Engine {
 public:
  explicit ClientEngine(ManualEngine& shared) : shared_(shared) {}

  [[nodiscard]] const Clock& clock() const noexcept override { return shared_.clock(); }
  void post(Task task) override { (void)submit(std::move(task)); }
  [[nodiscard]] TimerId schedule(TimePoint at, Task task) override {
    return shared_.schedule(at, [stopped = stopped_, task = std::move(task)] {
      if (!*stopped) task();
    });
  }
  void cancel(TimerId id) noexcept override { shared_.cancel(id); }
  [[nodiscard]] std::uint64_t random() override { return shared_.random(); }
  [[nodiscard]] std::unique_ptr<Descriptor> watch(int fd) override { return shared_.watch(fd); }
  [[nodiscard]] bool dispatch(Task task) override { return !*stopped_ && shared_.dispatch(std::move(task)); }
  [[nodiscard]] bool submit(Task task) override { return !*stopped_ && shared_.submit(std::move(task)); }
  [[nodiscard]] bool notify(Task user_code) override { return submit(std::move(user_code)); }
  bool wait(util::Event& event, std::optional<std::chrono::nanoseconds> limit) override {
    return shared_.wait(event, limit);
  }
  [[nodiscard]] bool must_not_block() const noexcept override { return shared_.must_not_block(); }
  void stop() override {
    shared_.run();
    *stopped_ = true;
  }

 private:
  ManualEngine& shared_;
  const std::shared_ptr<bool> stopped_ = std::make_shared<bool>(false);
};

}  // namespace dlock::test
