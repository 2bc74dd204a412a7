#include "tests/support/throwaway_certificate.hpp"

#include <vector>

#include "torture/rig/child_process.hpp"

namespace dlock::test {

ThrowawayCertificate::ThrowawayCertificate(const std::string& names) : names_(names) {
  renew();
}

void ThrowawayCertificate::renew() const {
  const std::string ca_key = directory_.path() + "/ca.key";
  const std::string request = directory_.path() + "/server.csr";
  const std::vector<std::string> new_key = {"-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"};
  const auto run = [&](std::vector<std::string> command, bool with_key) {
    if (with_key) command.insert(command.end(), new_key.begin(), new_key.end());
    (void)rig::run_command(std::move(command));
  };
  run({"openssl", "req", "-x509", "-subj", "/CN=dlock test authority", "-days", "2", "-keyout", ca_key, "-out",
       authority()},
      true);
  run({"openssl", "req", "-subj", std::string("/CN=") + usual_owner, "-addext", "subjectAltName=" + names_, "-keyout",
       key(), "-out", request},
      true);
  run({"openssl", "x509", "-req", "-in", request, "-CA", authority(), "-CAkey", ca_key, "-CAcreateserial", "-days", "2",
       "-copy_extensions", "copyall", "-out", certificate()},
      false);
}

}  // namespace dlock::test
