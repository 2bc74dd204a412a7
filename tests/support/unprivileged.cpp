#include "tests/support/unprivileged.hpp"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include "tests/support/server.hpp"
#include "torture/rig/system_call.hpp"

namespace dlock::test {

namespace {

constexpr const char* user = "postgres";

bool are_root() {
  return ::geteuid() == 0;
}

}  // namespace

std::vector<std::string> unprivileged(std::vector<std::string> command) {
  if (!are_root()) return command;
  // The kernel forgets whose end is to end it when the user changes, so setpriv says it again.
  std::vector<std::string> whole = {
      "setpriv", std::string("--reuid=") + user, std::string("--regid=") + user, "--init-groups", "--pdeathsig=KILL",
      "--"};
  whole.insert(whole.end(), command.begin(), command.end());
  return whole;
}

void give_away(const std::string& path) {
  if (!are_root()) return;
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> buffer{};
  if (::getpwnam_r(user, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    throw std::runtime_error(std::string("there is no user ") + user);
  }
  rig::require(::chown(path.c_str(), entry.pw_uid, entry.pw_gid), "chown " + path);
}

void write_and_give_away(const std::string& path, const std::string& text) {
  write_file(path, text);
  give_away(path);
}

}  // namespace dlock::test
