// First come, first served, and any waiter may leave early. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <iterator>
#include <list>
#include <string>
#include <unordered_map>
#include <utility>

#include <dlock/lock_kind.hpp>
#include <dlock/token.hpp>

namespace dlock::memory {

class Session;

struct Waiter {
  OwnerId owner;
  std::string holder;
  std::chrono::nanoseconds lease{};
  Session* session = nullptr;
  Mode mode = Mode::exclusive;
};

class WaitQueue {
 public:
  [[nodiscard]] bool empty() const noexcept { return order_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return order_.size(); }
  // nullptr if there is no waiter.
  [[nodiscard]] const Waiter* first() const noexcept { return order_.empty() ? nullptr : &order_.front(); }
  [[nodiscard]] OwnerId first_owner() const noexcept { return order_.empty() ? OwnerId() : order_.front().owner; }

  // An owner who waits already keeps its place.
  void push(Waiter waiter) {
    if (places_.contains(waiter.owner)) return;
    const OwnerId owner = waiter.owner;
    order_.push_back(std::move(waiter));
    places_.emplace(owner, std::prev(order_.end()));
  }

  [[nodiscard]] Waiter pop() {
    Waiter first = std::move(order_.front());
    places_.erase(first.owner);
    order_.pop_front();
    return first;
  }

  void erase(const OwnerId& owner) {
    const auto place = places_.find(owner);
    if (place == places_.end()) return;
    order_.erase(place->second);
    places_.erase(place);
  }

  void erase_session(const Session& session) {
    for (auto waiter = order_.begin(); waiter != order_.end();) {
      const auto next = std::next(waiter);
      if (waiter->session == &session) erase(OwnerId(waiter->owner));
      waiter = next;
    }
  }

 private:
  std::list<Waiter> order_;
  std::unordered_map<OwnerId, std::list<Waiter>::iterator> places_;
};

}  // namespace dlock::memory
