// Iteration over a map that the calls may change.
#pragma once

#include <vector>

namespace dlock::common {

// Calls f with the key and the value of each entry that is in the map now, in its order, and still there by then.
template <class Map, class F>
void for_each_still_in(Map& map, F&& f) {
  std::vector<typename Map::key_type> keys;
  keys.reserve(map.size());
  for (const auto& [key, value] : map) keys.push_back(key);
  for (const auto& key : keys) {
    if (const auto found = map.find(key); found != map.end()) f(key, found->second);
  }
}

}  // namespace dlock::common
