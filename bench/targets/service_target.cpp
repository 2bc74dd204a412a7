#include "bench/targets/service_target.hpp"

#include <utility>

#include "bench/targets/distant_target.hpp"

namespace dlock::bench {

ServiceTarget::ServiceTarget(rig::UrlText given, std::string backend, std::string strategy) : given_(std::move(given)) {
  rig::UrlText shown = given_;
  if (!strategy.empty()) shown.set("strategy", strategy);
  info_.label = strategy.empty() ? backend : backend + " " + strategy;
  info_.backend = std::move(backend);
  info_.strategy = std::move(strategy);
  info_.url = shown.shown();
}

std::unique_ptr<Target> ServiceTarget::at_distance(std::chrono::nanoseconds round_trip) {
  const std::vector<rig::HostPort> all = rig::hosts_for_proxies(given_);
  if (all.empty()) return nullptr;
  return std::make_unique<DistantTarget>(*this, all, round_trip);
}

void ServiceTarget::add_setting(std::string name, std::string value) {
  if (!value.empty()) info_.settings.emplace_back(std::move(name), std::move(value));
}

}  // namespace dlock::bench
