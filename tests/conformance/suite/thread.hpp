// A thread of a test: joined when it is destroyed, and an exception that leaves its body is a failure of the test
// instead of the end of the program.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <stop_token>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace dlock::conformance {

class Thread {
 public:
  // body(std::stop_token) or body(); the stop is requested before the thread is joined.
  template <class Body>
  explicit Thread(Body body)
      : thread_([body = std::move(body)](const std::stop_token& stop) mutable {
          try {
            if constexpr (std::is_invocable_v<Body&, std::stop_token>) {
              body(stop);
            } else {
              body();
            }
          } catch (const std::exception& e) {
            ADD_FAILURE() << "a thread of the test ended with: " << e.what();
          }
        }) {}

 private:
  std::jthread thread_;
};

// Runs body(0) to body(count - 1) at once, and waits for them.
template <class Count, class Body>
void run_threads(Count count, const Body& body) {
  std::vector<Thread> threads;
  for (Count i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
}

}  // namespace dlock::conformance
