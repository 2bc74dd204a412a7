#include "tests/torture/breakage/own_network.hpp"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "util/unique_fd.hpp"

namespace dlock::torture {
namespace {

bool bring_loopback_up() {
  const util::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return false;
  ifreq request{};
  constexpr std::string_view loopback = "lo";
  std::memcpy(static_cast<void*>(request.ifr_name), loopback.data(), loopback.size());
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  return ::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

}  // namespace

bool enter_own_network(std::string& why_not) {
  const util::UniqueFd before(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!before || ::unshare(CLONE_NEWNET) != 0) {
    why_not = std::string("cannot make a network namespace: ") + std::strerror(errno);
    return false;
  }
  if (bring_loopback_up()) return true;
  why_not = std::string("cannot bring the loopback interface up: ") + std::strerror(errno);
  (void)::setns(before.get(), CLONE_NEWNET);  // who may leave a namespace may come back
  return false;
}

}  // namespace dlock::torture
