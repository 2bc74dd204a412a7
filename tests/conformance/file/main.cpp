#include <memory>

#include <dlock/conformance/suite.hpp>

#include "file/file_fixture.hpp"

int main(int argc, char** argv) {
  namespace conformance = dlock::conformance;
  conformance::add_subject({"file", [] { return std::make_unique<conformance::FileFixture>(); }});
  return conformance::run(argc, argv);
}
