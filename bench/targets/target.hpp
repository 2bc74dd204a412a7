// A service and strategy to measure.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dlock/dlock.hpp>

#include "bench/report/result.hpp"
#include "bench/targets/floor.hpp"

namespace dlock::bench {

// The service's counts since it was started.
struct Operations {
  double carried_out = 0;          // requests of clients
  std::optional<double> wake_ups;  // messages without a request: watch events, publications
};

// The prefix of all names that scenarios lock, by which clean_up() finds them.
inline constexpr const char* lock_names = "dlock-bench/";

class Target {
 public:
  Target() = default;
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  virtual ~Target() = default;

  // "redis queue": the backend, and the strategy if it has several.
  [[nodiscard]] const std::string& label() const noexcept { return info_.label; }
  void set_label(std::string label) { info_.label = std::move(label); }
  [[nodiscard]] const ServiceInfo& info() const noexcept { return info_; }
  // For connect(), including the password; for a client that holds, or waits for, at most that many locks at a time.
  [[nodiscard]] virtual std::string url(std::size_t locks) const = 0;
  [[nodiscard]] Client connect(std::size_t locks, ClientOptions options = {}) const {
    return dlock::connect(url(locks), std::move(options));
  }

  // How many locks one client can try; 0: any number. Beyond it the service would refuse connections.
  [[nodiscard]] virtual std::size_t most_locks() const { return 0; }

  // How many floors can be connected at the same time, besides a client with most_locks(); 0: any number.
  [[nodiscard]] virtual std::size_t most_floors() const { return 0; }

  [[nodiscard]] virtual bool has_floor() const = 0;
  // A floor with its own connection, for a lock of that name. Floors and dlock do not exclude each other. Any thread.
  [[nodiscard]] virtual std::unique_ptr<Floor> make_floor(const std::string& name) = 0;
  // nullopt: the service counts nothing, or reports it late: it is queried before and after all that is measured, also
  // during calls.
  [[nodiscard]] virtual std::optional<Operations> operations() = 0;
  // The same target behind proxies that delay by half of that time in each direction. nullptr: it is not reached over
  // TCP. The original must outlive it.
  [[nodiscard]] virtual std::unique_ptr<Target> at_distance(std::chrono::nanoseconds round_trip) = 0;
  // Removes what measurements have left in the service: only below the names of benchmarks. Throws.
  virtual void clean_up() = 0;

 protected:
  ServiceInfo info_;
};

}  // namespace dlock::bench
