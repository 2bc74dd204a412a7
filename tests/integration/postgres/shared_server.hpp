// A server that the tests of a suite share.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "tests/support/postgres_server.hpp"

namespace dlock::test {

template <class Base = testing::Test>
class OnSharedServer : public Base {
 protected:
  static void SetUpTestSuite() { shared = std::make_unique<PostgresServer>(); }
  static void TearDownTestSuite() { shared.reset(); }

 private:
  static inline std::unique_ptr<PostgresServer> shared;

 protected:
  PostgresServer& server = *shared;
};

}  // namespace dlock::test
