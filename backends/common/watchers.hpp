// The watches of one client by key, in the order in which they began. A change of a key is reported to all its
// watchers, or only to the first.
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

// A watcher that is notified may end any watch and begin new ones. In tasks only.
class Watchers {
 public:
  // nobody_left: called when the last watch of a key has ended. May begin watches.
  Watchers(Executor& executor, std::function<void(const std::string& key)> nobody_left)
      : executor_(executor), nobody_left_(std::move(nobody_left)) {}

  // The watch ends with its destruction, and before this object does.
  [[nodiscard]] std::unique_ptr<Watch> watch(const std::string& key, std::function<void()> changed);

  [[nodiscard]] bool empty() const noexcept { return keys_.empty(); }
  [[nodiscard]] std::size_t count(const std::string& key) const;

  void tell_all(const std::string& key);
  void tell_all();
  // Notifies the one that has watched longest. If its watch ends before taken(), a task notifies the next one, because
  // it is unknown whether the first one reacted.
  void tell_first(const std::string& key);
  // A watcher of this key has got what all of them wait for, so the others need not try.
  void taken(const std::string& key);
  // Notifies one watcher of any key.
  void tell_any();

 private:
  class KeyWatch;
  struct Key {
    std::map<std::uint64_t, std::function<void()>> watchers;  // by id, so the oldest is the first
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
