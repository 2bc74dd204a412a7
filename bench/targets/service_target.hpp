// What the targets of all services have in common: a URL of their own, floors, and another way to the service.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "bench/targets/target.hpp"
#include "torture/rig/url_text.hpp"

namespace dlock::bench {

// How long a question to a service may take that is not part of a measurement.
inline constexpr std::chrono::seconds answer_limit{10};

class ServiceTarget : public Target {
 public:
  // Before anything is measured, once the service has been found usable: makes what has to be there, and looks at the
  // settings. What cannot be found out is left out. Throws when there can be no measuring.
  virtual void prepare() {}

  [[nodiscard]] std::string url(std::size_t locks) const override { return url_for(locks).text(); }
  [[nodiscard]] std::unique_ptr<Floor> make_floor(const std::string& name) final { return floor_at(url_for(1), name); }
  [[nodiscard]] std::unique_ptr<Target> at_distance(std::chrono::nanoseconds round_trip) final;

  // A floor that reaches the service by a URL of this target, or one that differs from it in its hosts. Any thread.
  [[nodiscard]] virtual std::unique_ptr<Floor> floor_at(const rig::UrlText& url, const std::string& name) = 0;

 protected:
  // The URL is the user's. A backend that has no strategies has an empty one.
  ServiceTarget(rig::UrlText given, std::string backend, std::string strategy);

  [[nodiscard]] const rig::UrlText& given() const noexcept { return given_; }
  // The user's, with our strategy and our place for locks. Any thread.
  [[nodiscard]] virtual rig::UrlText url_for(std::size_t locks) const = 0;
  // Leaves out what could not be found out.
  void add_setting(std::string name, std::string value);

 private:
  rig::UrlText given_;
};

}  // namespace dlock::bench
