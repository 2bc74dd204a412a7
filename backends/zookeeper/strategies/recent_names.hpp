// Which names somebody else held when they were last tried. A try begins with the create, so that a free lock is one
// round trip; of such a name it looks first, so that trying a busy lock again and again costs no writes.
#pragma once

#include <cstddef>
#include <set>
#include <string>

namespace dlock::zookeeper {

class BusyNames {
 public:
  void add(const std::string& name) {
    if (names_.size() >= most) names_.clear();
    names_.insert(name);
  }
  void remove(const std::string& name) {
    if (!names_.empty()) names_.erase(name);
  }
  [[nodiscard]] bool contains(const std::string& name) const { return names_.contains(name); }

 private:
  // Whoever tries more names than that writes a little more.
  static constexpr std::size_t most = 1000;

  std::set<std::string> names_;
};

}  // namespace dlock::zookeeper
