// Names of locks with a recent finding. An acquire begins with the create, so that a free lock takes one round trip. A
// try of a name that a different client held begins with a query, so that repeated tries of a busy lock write nothing;
// so does every acquire of a name whose queue must not be joined.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_set>

namespace dlock::zookeeper {

class RecentNames {
 public:
  void add(const std::string& name) {
    if (names_.size() >= most) names_.clear();
    names_.insert(name);
  }
  void remove(const std::string& name) { names_.erase(name); }
  [[nodiscard]] bool contains(const std::string& name) const { return names_.contains(name); }

 private:
  // A client that uses more names than that writes a little more.
  static constexpr std::size_t most = 1000;

  std::unordered_set<std::string> names_;
};

}  // namespace dlock::zookeeper
