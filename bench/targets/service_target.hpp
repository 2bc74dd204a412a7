// The base of all targets: a URL, a floor, and proxies before the service.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "bench/targets/target.hpp"
#include "torture/rig/url_text.hpp"

namespace dlock::bench {

// The limit for a query to a service that is not part of a measurement.
inline constexpr std::chrono::seconds answer_limit{10};

// Which locks a service loses in a crash or a failover, for ServiceInfo.
namespace loses {
inline constexpr const char* everything = "all locks";
inline constexpr const char* latest = "last grants";
inline constexpr const char* nothing = "nothing";
inline constexpr const char* unknown = "not known";
}  // namespace loses

class ServiceTarget : public Target {
 public:
  // Called before the first measurement, once the service is known to be usable: creates what is needed, and reads the
  // settings. Leaves out what is unknown. Throws if no measurement is possible.
  virtual void prepare() {}

  [[nodiscard]] std::string url(std::size_t locks) const final { return url_for(locks).text(); }
  [[nodiscard]] bool has_floor() const override { return true; }
  [[nodiscard]] std::unique_ptr<Floor> make_floor(const std::string& name) final { return floor_at(url_for(1), name); }
  [[nodiscard]] std::optional<Operations> operations() override { return std::nullopt; }
  [[nodiscard]] std::unique_ptr<Target> at_distance(std::chrono::nanoseconds round_trip) final;

  // A floor that reaches the service by a URL of this target, or by one with different hosts. Any thread.
  [[nodiscard]] virtual std::unique_ptr<Floor> floor_at(const rig::UrlText& url, const std::string& name) = 0;

 protected:
  // The URL is the user's. strategy: empty if the service has none.
  ServiceTarget(rig::UrlText given, std::string backend, const std::string& strategy);

  [[nodiscard]] const rig::UrlText& given() const noexcept { return given_; }
  // The place for locks, as a parameter of the URL.
  void set_place(const char* parameter, const std::string& place) { own_.set(parameter, place); }
  // The user's URL, with this target's strategy and place for locks. Any thread.
  [[nodiscard]] virtual rig::UrlText url_for(std::size_t /*locks*/) const { return own_; }
  // No effect if the value is empty.
  void add_setting(std::string name, std::string_view value);

 private:
  rig::UrlText given_;
  rig::UrlText own_;
};

// A unique name for what one run creates in a service: "dlock-bench-<process>-<random>", with that character between
// its parts; a new one at each call.
[[nodiscard]] std::string own_name(char separator = '-');

// Adds the count of another server. nullopt: one of them does not report it.
inline void add(std::optional<double>& sum, const std::optional<double>& more) {
  sum = sum && more ? std::optional(*sum + *more) : std::nullopt;
}

// The value in the first line that begins with the name and the separator, without the end of the line.
[[nodiscard]] std::optional<std::string_view> value_in(std::string_view text, std::string_view name, char separator);
// The number at the start of that value. nullopt: it does not begin with one.
[[nodiscard]] std::optional<double> number_in(std::string_view text, std::string_view name, char separator);
// The sum over all lines `name{labels} value` of Prometheus' text format. nullopt: there is none, or a value is no
// number.
[[nodiscard]] std::optional<double> metric_sum(std::string_view text, std::string_view name);

// A target in its own place below the URL's: a store, a directory, a prefix, a schema. Throw Error(invalid_argument).
[[nodiscard]] std::unique_ptr<ServiceTarget> make_memory_target(const rig::UrlText& url, const std::string& strategy);
[[nodiscard]] std::unique_ptr<ServiceTarget> make_file_target(const rig::UrlText& url, const std::string& strategy);
[[nodiscard]] std::unique_ptr<ServiceTarget> make_redis_target(const rig::UrlText& url, const std::string& strategy);
[[nodiscard]] std::unique_ptr<ServiceTarget> make_zookeeper_target(const rig::UrlText& url,
                                                                   const std::string& strategy);
[[nodiscard]] std::unique_ptr<ServiceTarget> make_etcd_target(const rig::UrlText& url, const std::string& strategy);
[[nodiscard]] std::unique_ptr<ServiceTarget> make_postgres_target(const rig::UrlText& url, const std::string& strategy);
[[nodiscard]] std::unique_ptr<ServiceTarget> make_mysql_target(const rig::UrlText& url, const std::string& strategy);

}  // namespace dlock::bench
