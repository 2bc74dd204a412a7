// A certificate for localhost and 127.0.0.1, and the authority that signed it, made for one test.
#pragma once

#include <string>

#include "tests/support/scratch_directory.hpp"

namespace dlock::test {

class ThrowawayCertificate {
 public:
  // Runs the openssl command. Throws std::runtime_error with what it printed if it fails.
  ThrowawayCertificate();

  [[nodiscard]] std::string authority() const { return directory_.path() + "/ca.crt"; }
  [[nodiscard]] std::string certificate() const { return directory_.path() + "/server.crt"; }
  [[nodiscard]] std::string key() const { return directory_.path() + "/server.key"; }

 private:
  ScratchDirectory directory_;
};

}  // namespace dlock::test
