// Who waits for what: those of one client who wait for the same thing, under one key, in the order in which they came.
// The one that hears of the thing tells all of them, or only the first.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/try_backend.hpp>

namespace dlock::common {

// Those who are told may end their own watch, those of others, and begin new ones. In tasks only.
class Watchers {
 public:
  // nobody_left: called when the last one who watched a key has left. May begin watches.
  Watchers(Executor& executor, std::function<void(const std::string& key)> nobody_left)
      : executor_(executor), nobody_left_(std::move(nobody_left)) {}

  // The watch ends with its destruction, and before this object does.
  [[nodiscard]] std::unique_ptr<Watch> watch(const std::string& key, std::function<void()> changed);

  [[nodiscard]] bool empty() const noexcept { return keys_.empty(); }
  [[nodiscard]] std::size_t count(const std::string& key) const;

  void tell_all(const std::string& key);
  void tell_all();
  // Tells the one that has watched longest. If that one leaves before anything was taken(), the next one is told, as a
  // task: it is unknown whether it did anything about it.
  void tell_first(const std::string& key);
  // One of those who watch it has got what they wait for, so the others need not look.
  void taken(const std::string& key);
  // Tells one, of no particular key.
  void tell_any();

 private:
  class KeyWatch;
  struct Key {
    std::map<std::uint64_t, std::function<void()>> watchers;  // by id: the one that has watched longest is the first
    bool first_was_told = false;
  };

  void leave(const std::string& key, std::uint64_t id);

  Executor& executor_;
  const std::function<void(const std::string&)> nobody_left_;
  std::unordered_map<std::string, Key> keys_;
  std::uint64_t last_id_ = 0;
  Lifetime lifetime_;
};

}  // namespace dlock::common
