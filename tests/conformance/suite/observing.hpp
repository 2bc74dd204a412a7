// An observer that counts what happens to leases.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <dlock/observer.hpp>

#include "suite/wait.hpp"

namespace dlock::conformance {

class RecordingObserver final : public Observer {
 public:
  void renewed(const RenewedEvent& event) override { of(renewals_, event.name).set(); }
  void lost(const LostEvent& event) override {
    {
      const std::scoped_lock lock(mutex_);
      last_loss_ = event;
    }
    of(losses_, event.name).set();
  }
  void released(const ReleasedEvent& event) override { of(releases_, event.name).set(); }

  [[nodiscard]] Event& renewals(const std::string& name) { return of(renewals_, name); }
  [[nodiscard]] Event& losses(const std::string& name) { return of(losses_, name); }
  [[nodiscard]] Event& releases(const std::string& name) { return of(releases_, name); }
  [[nodiscard]] LostEvent last_loss() const {
    const std::scoped_lock lock(mutex_);
    return last_loss_;
  }

 private:
  using Events = std::map<std::string, Event>;
  Event& of(Events& events, const std::string& name) {
    const std::scoped_lock lock(mutex_);
    return events[name];
  }

  mutable std::mutex mutex_;
  Events renewals_;
  Events losses_;
  Events releases_;
  LostEvent last_loss_;
};

}  // namespace dlock::conformance
