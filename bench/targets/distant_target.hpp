// A target behind proxies that make it far away.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/targets/service_target.hpp"
#include "bench/targets/url_text.hpp"
#include "tests/support/tcp_proxy.hpp"

namespace dlock::bench {

class DistantTarget final : public Target {
 public:
  // Connects to each host once, to see which of its addresses answers. Throws std::runtime_error where none does. The
  // near target must outlive this one.
  DistantTarget(ServiceTarget& near, const std::vector<HostPort>& hosts, std::chrono::nanoseconds round_trip);

  [[nodiscard]] std::string url(std::size_t locks) const override { return moved(near_.url(locks)).text(); }
  [[nodiscard]] std::size_t most_locks() const override { return near_.most_locks(); }
  [[nodiscard]] std::size_t most_floors() const override { return near_.most_floors(); }
  [[nodiscard]] std::unique_ptr<Floor> make_floor(const std::string& name) override {
    return near_.floor_at(moved(near_.url(1)), name);
  }
  [[nodiscard]] std::optional<Operations> operations() override { return near_.operations(); }
  [[nodiscard]] std::unique_ptr<Target> at_distance(std::chrono::nanoseconds round_trip) override {
    return near_.at_distance(round_trip);
  }
  // There is nothing that the near target does not remove.
  void clean_up() override {}

 private:
  [[nodiscard]] UrlText moved(const std::string& url) const;

  ServiceTarget& near_;
  std::vector<std::unique_ptr<test::TcpProxy>> proxies_;
};

}  // namespace dlock::bench
