// Names of locks about which something was found out lately. An acquire begins with the create, so that a free lock is
// one round trip; a try of a name that another client held looks first, so that trying a busy lock again and again
// costs no writes, and so does every acquire of a name whose queue must not be joined.
#pragma once

#include <cstddef>
#include <iterator>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

namespace dlock::zookeeper {

class RecentNames {
 public:
  void add(const std::string& name) {
    remove(name);
    by_age_.push_back(name);
    names_.emplace(by_age_.back(), std::prev(by_age_.end()));
    if (names_.size() > most) remove(std::string(by_age_.front()));
  }
  void remove(const std::string& name) {
    const auto found = names_.find(name);
    if (found == names_.end()) return;
    const auto place = found->second;
    names_.erase(found);
    by_age_.erase(place);
  }
  [[nodiscard]] bool contains(const std::string& name) const { return names_.contains(name); }

 private:
  // A client that uses more names than that writes a little more.
  static constexpr std::size_t most = 1000;

  std::list<std::string> by_age_;  // the oldest first
  std::unordered_map<std::string_view, std::list<std::string>::iterator> names_;
};

}  // namespace dlock::zookeeper
