// The contract as far as a plain lock shows it (lock, try_lock, unlock, and the lease underneath), for every lock type
// that is built on the library.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <dlock/dlock.hpp>

#include "suite/contract.hpp"

namespace dlock::conformance {

// A Cpp17TimedLockable over the library.
class AnyLock {
 public:
  AnyLock() = default;
  AnyLock(const AnyLock&) = delete;
  AnyLock& operator=(const AnyLock&) = delete;
  virtual ~AnyLock() = default;

  virtual void lock() = 0;
  virtual bool try_lock() = 0;
  virtual bool try_lock_for(std::chrono::nanoseconds wait) = 0;
  virtual bool try_lock_until(std::chrono::steady_clock::time_point deadline) = 0;
  virtual void unlock() noexcept = 0;
  [[nodiscard]] virtual const Lease& lease() const noexcept = 0;
};

struct Adapter {
  std::string name;
  std::function<std::unique_ptr<AnyLock>(DistributedLock)> make;
};

// All lock types there are.
[[nodiscard]] std::vector<Adapter> adapters();
void PrintTo(const Adapter& adapter, std::ostream* out);

class PlainLock : public ContractBase, public ::testing::WithParamInterface<std::tuple<Subject, Adapter>> {
 protected:
  // A lock of a client of its own; keeps its leases on these options.
  [[nodiscard]] std::unique_ptr<AnyLock> make(const std::string& name, const AcquireOptions& options = {},
                                              ClientOptions client_options = {}, Link link = Link::steady);

 private:
  [[nodiscard]] const Subject& subject() const override { return std::get<0>(GetParam()); }
};

}  // namespace dlock::conformance
