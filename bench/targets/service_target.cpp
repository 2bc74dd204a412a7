#include "bench/targets/service_target.hpp"

#include <unistd.h>

#include <charconv>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "torture/rig/detour.hpp"

namespace dlock::bench {

namespace {

// A target behind proxies that delay traffic.
class DistantTarget final : public Target {
 public:
  DistantTarget(ServiceTarget& near, const std::vector<rig::HostPort>& hosts, std::chrono::nanoseconds round_trip)
      : near_(near), way_(hosts) {
    info_ = near.info();
    for (rig::TcpProxy* const proxy : way_.proxies()) proxy->set({.delay = round_trip / 2});
  }

  [[nodiscard]] std::string url(std::size_t locks) const override { return way_to(locks).text(); }
  [[nodiscard]] std::size_t most_locks() const override { return near_.most_locks(); }
  [[nodiscard]] std::size_t most_floors() const override { return near_.most_floors(); }
  [[nodiscard]] bool has_floor() const override { return near_.has_floor(); }
  [[nodiscard]] std::unique_ptr<Floor> make_floor(const std::string& name) override {
    return near_.floor_at(way_to(1), name);
  }
  [[nodiscard]] std::optional<Operations> operations() override { return near_.operations(); }
  [[nodiscard]] std::unique_ptr<Target> at_distance(std::chrono::nanoseconds round_trip) override {
    return near_.at_distance(round_trip);
  }
  void clean_up() override {}  // the original target removes everything

 private:
  [[nodiscard]] rig::UrlText way_to(std::size_t locks) const { return way_.through(rig::UrlText(near_.url(locks))); }

  ServiceTarget& near_;
  rig::Detour way_;
};

// Returns the rest of the first line that begins with the name, and removes everything up to its end from the text.
std::optional<std::string_view> take_line(std::string_view& text, std::string_view name) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() == text.size() ? line.size() : line.size() + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(name)) return line.substr(name.size());
  }
  return std::nullopt;
}

std::optional<double> number_at_start(std::string_view text) {
  double value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

}  // namespace

ServiceTarget::ServiceTarget(rig::UrlText given, std::string backend, const std::string& strategy)
    : given_(std::move(given)), own_(given_) {
  if (!strategy.empty()) own_.set("strategy", strategy);
  info_.label = strategy.empty() ? backend : backend + " " + strategy;
  info_.backend = std::move(backend);
  info_.strategy = strategy;
  info_.url = own_.shown();
}

std::unique_ptr<Target> ServiceTarget::at_distance(std::chrono::nanoseconds round_trip) {
  const std::vector<rig::HostPort> hosts = rig::hosts_for_proxies(given_);
  if (hosts.empty()) return nullptr;
  return std::make_unique<DistantTarget>(*this, hosts, round_trip);
}

void ServiceTarget::add_setting(std::string name, std::string_view value) {
  if (!value.empty()) info_.settings.emplace_back(std::move(name), value);
}

std::string own_name(char separator) {
  std::random_device device;  // another machine may use the same process number
  return fmt::format("dlock{0}bench{0}{1}{0}{2:08x}", separator, ::getpid(), device());
}

std::optional<std::string_view> value_in(std::string_view text, std::string_view name, char separator) {
  while (const auto rest = take_line(text, name)) {
    if (rest->starts_with(separator)) return rest->substr(1);
  }
  return std::nullopt;
}

std::optional<double> number_in(std::string_view text, std::string_view name, char separator) {
  return number_at_start(value_in(text, name, separator).value_or(std::string_view()));
}

std::optional<double> metric_sum(std::string_view text, std::string_view name) {
  std::optional<double> sum;
  while (const auto rest = take_line(text, name)) {
    if (!rest->starts_with(' ') && !rest->starts_with('{')) continue;  // a longer name
    const auto value = number_at_start(rest->substr(rest->rfind(' ') + 1));
    if (!value) return std::nullopt;
    sum = sum.value_or(0) + *value;
  }
  return sum;
}

}  // namespace dlock::bench
