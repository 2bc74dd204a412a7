// What a client's observer is told, as events to wait for.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/observer.hpp>

#include "suite/wait.hpp"

namespace dlock::test {

class EventLog final : public Observer {
 public:
  void connection(const ConnectionEvent& event) override {
    (event.state == ConnectionEvent::State::connected ? connected : reconnecting).set();
  }
  void warning(const WarningEvent& event) override {
    {
      const std::scoped_lock lock(mutex_);
      warnings_.push_back(event);
    }
    warned.set();
  }
  void renewed(const RenewedEvent& /*event*/) override { renewals.set(); }
  void lost(const LostEvent& /*event*/) override { losses.set(); }

  // How many warnings say this.
  [[nodiscard]] std::size_t warnings_with(std::string_view text) const {
    const std::scoped_lock lock(mutex_);
    std::size_t count = 0;
    for (const WarningEvent& each : warnings_) count += each.reason.detail.find(text) != std::string::npos ? 1 : 0;
    return count;
  }

  conformance::Event connected;
  conformance::Event reconnecting;
  conformance::Event warned;
  conformance::Event renewals;
  conformance::Event losses;

 private:
  mutable std::mutex mutex_;
  std::vector<WarningEvent> warnings_;
};

}  // namespace dlock::test
