// An observer that records its events.
#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <dlock/observer.hpp>

namespace dlock::test {

class RecordingObserver final : public Observer {
 public:
  void acquired(const AcquiredEvent& e) override {
    last_acquired = e;
    note("acquired " + e.name);
  }
  void released(const ReleasedEvent& e) override {
    last_released = e;
    note("released " + e.name + (e.confirmed ? "" : " unconfirmed"));
  }
  void renewed(const RenewedEvent& e) override {
    last_renewed = e;
    note("renewed " + e.name);
  }
  void lost(const LostEvent& e) override {
    last_lost = e;
    note("lost " + e.name);
  }
  void connection(const ConnectionEvent& e) override {
    note(e.state == ConnectionEvent::State::connected ? "connected" : "reconnecting");
  }
  void warning(const WarningEvent& e) override {
    last_warning = e;
    note("warning " + e.name);
  }

  [[nodiscard]] std::vector<std::string> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  [[nodiscard]] std::size_t count(const std::string& event) const {
    const auto all = events();
    return static_cast<std::size_t>(std::count(all.begin(), all.end(), event));
  }

  std::function<void()> on_event;  // runs at every event; may throw
  AcquiredEvent last_acquired;
  ReleasedEvent last_released;
  RenewedEvent last_renewed;
  LostEvent last_lost;
  WarningEvent last_warning;

 private:
  void note(std::string event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    if (on_event) on_event();
  }

  mutable std::mutex mutex_;
  std::vector<std::string> events_;
};

}  // namespace dlock::test
