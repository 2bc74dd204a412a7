#include "tests/torture/breakage/network.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "torture/rig/child_process.hpp"
#include "util/unique_fd.hpp"

namespace dlock::torture {
namespace {

constexpr int everything_in_percent = 100;
constexpr std::string_view loopback = "lo";

bool bring_loopback_up() {
  const util::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return false;
  ifreq request{};
  std::memcpy(static_cast<void*>(request.ifr_name), loopback.data(), loopback.size());
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  return ::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

bool only_loopback() {
  const std::unique_ptr<struct if_nameindex, decltype(&::if_freenameindex)> all(::if_nameindex(), &::if_freenameindex);
  if (!all) return false;
  for (const auto* interface = all.get(); interface->if_index != 0; ++interface) {
    if (interface->if_name != loopback) return false;
  }
  return true;
}

std::string new_table() {
  static std::atomic<int> made{0};
  return fmt::format("dlock_loss_{}_{}", ::getpid(), ++made);
}

// A packet that is sent through the loopback interface comes in there once.
std::string rules(const std::string& table, const PacketLoss::Share& share) {
  const std::string chain = table + " loss";
  std::string text = fmt::format(
      "add table inet {}; add chain inet {} {{ type filter hook input priority 0; policy accept; }};", table, chain);
  // No random number is as much as a hundred, and nft refuses to ask whether it is less.
  const std::string chance = share.percent == everything_in_percent
                                 ? ""
                                 : fmt::format("numgen random mod {} < {} ", everything_in_percent, share.percent);
  for (const char* const end : {"dport", "sport"}) {
    text += fmt::format(" add rule inet {} iifname lo meta l4proto {{ tcp, udp }} th {} {} {}drop;", chain, end,
                        share.port, chance);
  }
  return text;
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

bool PacketLoss::available(std::string& why_not) {
  try {
    const PacketLoss none({.percent = 0, .port = 0});
    return true;
  } catch (const std::exception& e) {
    why_not = e.what();
    return false;
  }
}

PacketLoss::PacketLoss(const Share& share) : table_(new_table()) {
  if (!only_loopback()) throw std::runtime_error("packet loss needs a network of the program's own");
  (void)rig::run_command({"nft", rules(table_, share)});  // prints nothing but what is wrong
}

PacketLoss::~PacketLoss() {
  try {
    (void)rig::run_command({"nft", "delete table inet " + table_});
  } catch (const std::exception&) {
    (void)0;  // nothing can be done about it; the table goes with the network, which is the program's own
  }
}

}  // namespace dlock::torture
