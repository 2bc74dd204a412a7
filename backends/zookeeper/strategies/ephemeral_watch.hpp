// A waiter's interest in the node that is the lock: set again whenever it has fired.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <dlock/backoff.hpp>
#include <dlock/executor.hpp>
#include <dlock/lifetime.hpp>
#include <dlock/try_backend.hpp>

#include "backends/zookeeper/strategies/ephemeral.hpp"

namespace dlock::zookeeper {

class EphemeralWatch final : public Watch {
 public:
  EphemeralWatch(Ephemeral& client, std::string path, std::function<void()> changed);
  ~EphemeralWatch() override;

  void session_ready();

 private:
  void set();
  void answered(const Outcome& outcome);
  void tell_and_set();
  void set_later(std::chrono::nanoseconds pause);

  Ephemeral& client_;
  const std::string path_;
  const std::function<void()> changed_;
  std::unique_ptr<Watches::Interest> interest_;
  std::uint64_t round_ = 0;
  Backoff backoff_{std::chrono::seconds(2)};
  Timer timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::zookeeper
