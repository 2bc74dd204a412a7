// A certificate for localhost and 127.0.0.1, or other names, and the authority that signed it, made for one test.
#pragma once

#include <string>

#include "torture/rig/scratch_directory.hpp"

namespace dlock::test {

class ThrowawayCertificate {
 public:
  // In openssl's form.
  static constexpr const char* usual_names = "DNS:localhost,IP:127.0.0.1";
  // Its common name.
  static constexpr const char* usual_owner = "dlock test server";

  // Runs the openssl command. Throws std::runtime_error with what it printed if it fails.
  explicit ThrowawayCertificate(const std::string& names = usual_names);
  // Replaces authority, key and certificate, in the same files.
  void renew() const;

  [[nodiscard]] std::string authority() const { return directory_.path() + "/ca.crt"; }
  [[nodiscard]] std::string certificate() const { return directory_.path() + "/server.crt"; }
  [[nodiscard]] std::string key() const { return directory_.path() + "/server.key"; }

 private:
  const std::string names_;
  rig::ScratchDirectory directory_;
};

}  // namespace dlock::test
