// One object for the whole process, and a fresh one in a child made by fork(): there, a mutex that another thread of
// the parent had locked at that moment would stay locked.
//
//   static constinit PerProcess<Registry> registry;
//   const MutexLock lock(registry.get().mutex);
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "util/process.hpp"

namespace dlock::util {

template <class T>
class PerProcess {
 public:
  // Made at the first call in each process, and never destroyed: clients in static storage may use it until the very
  // end. Any thread.
  [[nodiscard]] T& get() {
    Made* found = made_;
    while (found == nullptr || found->generation != fork_generation()) {
      auto made = std::make_unique<Made>(found);
      if (made_.compare_exchange_strong(found, made.get())) found = made.release();
    }
    return found->object;
  }

 private:
  struct Made {
    explicit Made(Made* of_the_parent) : before(of_the_parent) {}
    T object;
    const std::uint64_t generation = fork_generation();
    Made* const before;  // keeps it reachable
  };
  std::atomic<Made*> made_{nullptr};
};

}  // namespace dlock::util
