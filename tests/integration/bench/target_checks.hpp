// What every target of a server has to do.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/dlock.hpp>

#include "bench/targets/catalog.hpp"

namespace dlock::bench {

using Targets = std::vector<std::unique_ptr<Target>>;

// A machine that is busy with other tests may stand still for seconds.
inline Targets targets_of(const std::string& url) {
  constexpr std::chrono::seconds reach_limit{20};
  const char separator = url.find('?') == std::string::npos ? '?' : '&';
  return make_targets(url + separator + "response_timeout=20s", reach_limit);
}

inline const std::string test_name = std::string(lock_names) + "test/a";

inline std::string setting(const Target& target, std::string_view name) {
  for (const auto& [key, value] : target.info().settings) {
    if (key == name) return value;
  }
  return {};
}

inline void acquire_and_release(Target& target, int times) {
  const Client client = target.connect(1);
  DistributedLock lock = client.make_lock(test_name);
  for (int i = 0; i < times; ++i) ASSERT_TRUE(lock.acquire().release());
}

// Of the other kinds of locks, as far as the service has them.
inline void use_other_kinds(Target& target) {
  const Client client = target.connect(1);
  if (client.capabilities().read_write_locks) {
    ASSERT_TRUE(client.make_read_write_lock(test_name + "/rw").acquire_shared().release());
  }
  if (client.capabilities().semaphores) {
    ASSERT_TRUE(client.make_semaphore(test_name + "/sem", 2).acquire().release());
  }
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

inline void use_its_floor(Target& target) {
  const auto floor = target.make_floor(test_name);
  floor->acquire();
  floor->release();
}

// Of dlock, by so many for each acquire and release; and not by asking.
inline void expect_that_operations_are_counted(Target& target, double least_for_each) {
  SCOPED_TRACE(target.label());
  constexpr int times = 50;
  const auto before = target.operations();
  const auto again = target.operations();
  acquire_and_release(target, times);
  const auto after = target.operations();
  ASSERT_TRUE(before && again && after);
  EXPECT_EQ(again->carried_out, before->carried_out);
  EXPECT_GE(after->carried_out - again->carried_out, least_for_each * times);
  // Connecting and the heartbeat take a few.
  EXPECT_LT(after->carried_out - again->carried_out, 4 * times);
}

inline void expect_that_distance_takes_time(Target& target) {
  SCOPED_TRACE(target.label());
  constexpr std::chrono::milliseconds round_trip{10};
  const auto far = target.at_distance(round_trip);
  ASSERT_TRUE(far);
  EXPECT_EQ(far->label(), target.label());
  const Client client = far->connect(1);
  DistributedLock lock = client.make_lock(test_name);
  Lease lease = lock.acquire();  // connects
  auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(lease.release());
  EXPECT_GE(std::chrono::steady_clock::now() - start, round_trip);
  const auto floor = far->make_floor(test_name);
  start = std::chrono::steady_clock::now();
  floor->acquire();
  EXPECT_GE(std::chrono::steady_clock::now() - start, round_trip);
  floor->release();
}

// Within the limit and with a word on what cannot be reached, but not on the password.
inline void expect_that_it_is_said_to_be_unreachable(const std::string& url, const std::string& said) {
  constexpr std::chrono::seconds limit{2};
  const auto start = std::chrono::steady_clock::now();
  try {
    (void)make_targets(url, limit);
    FAIL() << url;
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.code(), errc::unavailable) << text;
    EXPECT_NE(text.find(said), std::string::npos) << text;
    EXPECT_EQ(text.find("hunter2"), std::string::npos) << text;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10 * limit);  // and not the minutes that the system takes
}

}  // namespace dlock::bench
