// Tests in which the service is restarted, or processes that hold a lock are killed or stopped. They wait until the
// service is back, or until a session or a lease has ended, so each has several kinds of locks: of processes, the plain
// lock and one other.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "suite/contract.hpp"

namespace dlock::conformance {

class CrashContract : public ContractBase, public ::testing::WithParamInterface<Subject> {
 protected:
  // Another process with a session of its own: a short one, if the URL lets its client choose.
  struct Doomed {
    std::reference_wrapper<const Kind> kind;
    Worker process;
    FencingToken token;  // of what it holds
  };
  // The kinds of the subject; the plain lock is the first.
  [[nodiscard]] std::vector<std::reference_wrapper<const Kind>> tested_kinds() const;
  // One for each of two kinds, of those that the subject has.
  [[nodiscard]] std::vector<Doomed> doomed();
  // They hold name(), each of its kind.
  [[nodiscard]] std::vector<Doomed> doomed_holders();

  // How long the service keeps the lock of a process of which it hears no more. Services look for sessions that have
  // ended in steps, and may do so only every half session.
  [[nodiscard]] std::chrono::nanoseconds kept_for(const Worker& holder);
  // Kills them, and fails unless each lock can be held again in time, with a greater token; by the waiters, where there
  // are any, in the same order.
  void expect_free_after_death(std::vector<Doomed>& holders, std::vector<Pending> waiters = {});

 private:
  [[nodiscard]] const Subject& subject() const override { return GetParam(); }
};

}  // namespace dlock::conformance
