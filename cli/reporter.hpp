// Tells a person what happens to the connection and the lock while dlock has nothing else to say.
#pragma once

#include <dlock/observer.hpp>

#include <mutex>
#include <string>

namespace dlock::cli {

class Reporter final : public Observer {
 public:
  // Quiet: remembers, but says nothing.
  explicit Reporter(bool quiet) : quiet_(quiet) {}

  void lost(const LostEvent& event) override;
  void connection(const ConnectionEvent& event) override;
  void warning(const WarningEvent& event) override;

  // Why the lock was lost: ": <reason>", or nothing if that is not known (yet).
  [[nodiscard]] std::string loss_reason() const;

 private:
  const bool quiet_;
  mutable std::mutex mutex_;
  std::string loss_;      // guarded by mutex_
  bool cut_off_ = false;  // guarded by mutex_; one outage is reported once
};

}  // namespace dlock::cli
