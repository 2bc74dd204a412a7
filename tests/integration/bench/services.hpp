// The services that targets are tested with.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <dlock/dlock.hpp>

#include "bench/targets/catalog.hpp"

namespace dlock::bench {

class Service {
 public:
  Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  virtual ~Service() = default;

  // Parameters such as "strategy=poll" may follow.
  [[nodiscard]] virtual std::string url(const std::string& parameters = {}) const = 0;
  // The names of everything that it stores, and of what is in it.
  [[nodiscard]] virtual std::string content() = 0;
};

struct Kind {
  const char* name;
  std::unique_ptr<Service> (*start)();
  const char* place;  // a place of the user's for locks, as a parameter of the URL; empty: there are none
  double least;       // operations for an acquire and a release; 0: the service does not count them
  bool distance;      // proxies can stand in front of it
  const char* shown;  // settings of its first strategy, versions up to the first dot, and what it forgets

  friend void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }
};

[[nodiscard]] const std::vector<Kind>& kinds();

using Targets = std::vector<std::unique_ptr<Target>>;

// A machine that is busy with other tests may stand still for seconds.
inline Targets targets_of(const std::string& url) {
  constexpr std::chrono::seconds reach_limit{20};
  const char separator = url.find('?') == std::string::npos ? '?' : '&';
  return make_targets(url + separator + "response_timeout=20s", reach_limit);
}
inline std::unique_ptr<Target> target_of(const std::string& url) {
  return std::move(targets_of(url).front());
}

inline const std::string test_name = std::string(lock_names) + "test/a";

inline void acquire_and_release(const Target& target, int times) {
  const Client client = target.connect(1);
  DistributedLock lock = client.make_lock(test_name);
  for (int i = 0; i < times; ++i) ASSERT_TRUE(lock.acquire().release());
}

inline void expect_that_its_floor_excludes(Target& target) {
  SCOPED_TRACE(target.label());
  ASSERT_TRUE(target.has_floor());
  const auto one = target.make_floor(test_name);
  const auto other = target.make_floor(test_name);
  for (int i = 0; i < 3; ++i) {
    one->acquire();
    one->release();
  }
  one->acquire();
  EXPECT_THROW(other->acquire(), std::runtime_error);
  one->release();
  EXPECT_THROW(one->release(), std::runtime_error);
  const auto next = target.make_floor(test_name);  // the others may be of no more use
  next->acquire();
  next->release();
}

}  // namespace dlock::bench
