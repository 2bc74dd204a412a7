#include "tests/torture/breakage/packet_loss.hpp"

#include <fmt/format.h>
#include <net/if.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>

#include "torture/rig/child_process.hpp"

namespace dlock::torture {
namespace {

constexpr int everything_in_percent = 100;

void run_nft(const std::string& commands) {
  (void)rig::run_command({"nft", commands});  // prints nothing but what is wrong
}

bool only_loopback() {
  const std::unique_ptr<struct if_nameindex, decltype(&::if_freenameindex)> all(::if_nameindex(), &::if_freenameindex);
  if (!all) return false;
  for (const auto* interface = all.get(); interface->if_index != 0; ++interface) {
    if (std::strcmp(interface->if_name, "lo") != 0) return false;
  }
  return true;
}

std::string new_table() {
  static std::atomic<int> made{0};
  return fmt::format("dlock_loss_{}_{}", ::getpid(), ++made);
}

// What is sent through the loopback interface comes in there once.
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

bool PacketLoss::available(std::string& why_not) {
  if (!only_loopback()) {
    why_not = "this program has no network of its own";
    return false;
  }
  try {
    const PacketLoss none({.percent = 0, .port = 0});
    return true;
  } catch (const std::exception& e) {
    why_not = e.what();
    return false;
  }
}

PacketLoss::PacketLoss(const Share& share) : table_(new_table()) {
  if (share.percent < 0 || share.percent > everything_in_percent) {
    throw std::invalid_argument(fmt::format("packet loss of {} %", share.percent));
  }
  if (!only_loopback()) throw std::runtime_error("packet loss needs a network of the program's own");
  run_nft(rules(table_, share));
}

PacketLoss::~PacketLoss() {
  try {
    run_nft("delete table inet " + table_);
  } catch (const std::exception&) {
    (void)0;  // nothing can be done about it; the table goes with the network, which is the program's own
  }
}

}  // namespace dlock::torture
