#include "program_run.hpp"

namespace dlock::conformance {
namespace {

TEST(BareUrl, Memory_Conforms) {
  expect_to_conform("memory://bare");
}

}  // namespace
}  // namespace dlock::conformance
