// The network between simulated processes and the lock service: in good times each message takes the same short time,
// in bad times anything may become of it, and a process may be cut off.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>

#include "backends/memory/memory_faults.hpp"
#include "torture/simulation/world.hpp"

namespace dlock::torture::simulation {

// What happened to messages that was not good.
enum class Mishap { lost, refused, reply_lost, late, doubled, held };
inline constexpr std::array<std::string_view, 6> mishap_names{"lost", "refused", "reply lost",
                                                              "late", "doubled", "held"};
using MishapCounts = std::array<std::size_t, mishap_names.size()>;

class Network final : public memory::FaultInjector {
 public:
  // deaf: notices from the service never arrive.
  Network(World& world, std::chrono::nanoseconds latency, bool deaf) : world_(world), latency_(latency), deaf_(deaf) {}

  [[nodiscard]] memory::Delivery plan(const memory::Message& message) override;

  // So many messages of a hundred suffer from something.
  void set_trouble(std::uint64_t percent) { trouble_ = percent; }
  [[nodiscard]] std::uint64_t trouble() const { return trouble_; }
  // All messages of this process meet with this.
  void cut_off(int process, Mishap how) { cut_[process] = how; }
  void connect(int process) { cut_.erase(process); }
  // Nothing of this process arrives any more, in either direction.
  void mute(int process) { muted_.insert(process); }
  void heal() {
    trouble_ = 0;
    cut_.clear();
  }
  [[nodiscard]] const MishapCounts& counts() const { return counts_; }

 private:
  [[nodiscard]] memory::Delivery meet_with(Mishap mishap);
  [[nodiscard]] std::chrono::nanoseconds some_time();

  World& world_;
  const std::chrono::nanoseconds latency_;
  const bool deaf_;
  std::uint64_t trouble_ = 0;
  std::map<int, Mishap> cut_;
  std::set<int> muted_;
  MishapCounts counts_{};
};

// "host:pid:7" is process 7.
[[nodiscard]] int process_of(std::string_view holder);

}  // namespace dlock::torture::simulation
