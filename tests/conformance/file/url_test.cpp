#include "program_run.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::conformance {
namespace {

TEST(BareUrl, File_Conforms) {
  const rig::ScratchDirectory directory;
  expect_to_conform("file://" + directory.path() + "/locks");
}

}  // namespace
}  // namespace dlock::conformance
