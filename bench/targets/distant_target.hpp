// A target behind proxies that make it far away.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/targets/service_target.hpp"
#include "torture/rig/detour.hpp"
#include "torture/rig/url_text.hpp"

namespace dlock::bench {

class DistantTarget final : public Target {
 public:
  // Throws std::runtime_error where a host does not answer. The near target must outlive this one.
  DistantTarget(ServiceTarget& near, const std::vector<rig::HostPort>& hosts, std::chrono::nanoseconds round_trip);

  [[nodiscard]] std::string url(std::size_t locks) const override {
    return way_.through(rig::UrlText(near_.url(locks))).text();
  }
  [[nodiscard]] std::size_t most_locks() const override { return near_.most_locks(); }
  [[nodiscard]] std::size_t most_floors() const override { return near_.most_floors(); }
  [[nodiscard]] bool has_floor() const override { return near_.has_floor(); }
  [[nodiscard]] std::unique_ptr<Floor> make_floor(const std::string& name) override {
    return near_.floor_at(way_.through(rig::UrlText(near_.url(1))), name);
  }
  [[nodiscard]] std::optional<Operations> operations() override { return near_.operations(); }
  [[nodiscard]] std::unique_ptr<Target> at_distance(std::chrono::nanoseconds round_trip) override {
    return near_.at_distance(round_trip);
  }
  // There is nothing that the near target does not remove.
  void clean_up() override {}

 private:
  ServiceTarget& near_;
  rig::Detour way_;
};

}  // namespace dlock::bench
