#include "torture/simulation/network.hpp"

#include <charconv>

namespace dlock::torture::simulation {

using memory::Delivery;
using namespace std::chrono_literals;

Delivery Network::plan(const memory::Message& message) {
  if (deaf_ && message.operation == memory::Operation::notice) return {.fate = Delivery::Fate::lost};
  if (!cut_.empty() || !muted_.empty()) {
    const int process = process_of(message.holder);
    if (muted_.contains(process)) return {.fate = Delivery::Fate::lost};
    const auto cut = cut_.find(process);
    if (cut != cut_.end()) return meet_with(cut->second);
  }
  if (trouble_ != 0 && world_.dice.chance(trouble_)) {
    return meet_with(static_cast<Mishap>(world_.dice.below(mishap_names.size())));
  }
  return {.delay = latency_, .reply_delay = latency_};
}

Delivery Network::meet_with(Mishap mishap) {
  ++counts_[static_cast<std::size_t>(mishap)];
  switch (mishap) {
    case Mishap::lost:
      return {.fate = Delivery::Fate::lost};
    case Mishap::refused:
      return {.fate = Delivery::Fate::refused};
    case Mishap::reply_lost:
      return {.delay = latency_, .reply_lost = true};
    case Mishap::late:
      return {.delay = some_time(), .reply_delay = some_time()};
    case Mishap::doubled:
      return {.delay = some_time(), .reply_delay = some_time(), .duplicate = some_time()};
    case Mishap::held:
      return {.fate = Delivery::Fate::held, .reply_delay = latency_};
  }
  return {};
}

std::chrono::nanoseconds Network::some_time() {
  return world_.dice.up_to(world_.dice.chance(25) ? 2s : 100ms);
}

int process_of(std::string_view holder) {
  const std::string_view label = holder.substr(holder.rfind(':') + 1);
  int number = 0;
  (void)std::from_chars(label.data(), label.data() + label.size(), number);  // 0 is none
  return number;
}

}  // namespace dlock::torture::simulation
