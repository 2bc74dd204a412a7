// Tests of the other kinds of locks, for subjects that have them.
#pragma once

#include <string>

#include <dlock/dlock.hpp>

#include "suite/contract.hpp"
#include "suite/observing.hpp"
#include "suite/thread.hpp"

namespace dlock::conformance {

class ReadWriteContract : public ContractBase, public ::testing::WithParamInterface<Subject> {
 protected:
  [[nodiscard]] ReadWriteLock lock_of(const Client& client) const { return client.make_read_write_lock(name()); }

 private:
  [[nodiscard]] const Subject& subject() const override { return GetParam(); }
};

class PermitContract : public ContractBase, public ::testing::WithParamInterface<Subject> {
 private:
  [[nodiscard]] const Subject& subject() const override { return GetParam(); }
};

class ElectionContract : public ContractBase, public ::testing::WithParamInterface<Subject> {
 private:
  [[nodiscard]] const Subject& subject() const override { return GetParam(); }
};

}  // namespace dlock::conformance
