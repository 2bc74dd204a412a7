// What a lock protects: takes writes in the order of their tokens, and refuses those that come too late.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "torture/simulation/world.hpp"

namespace dlock::torture::simulation {

class Resource {
 public:
  // blind: takes everything.
  Resource(World& world, bool blind) : world_(world), blind_(blind) {}

  void serve(const std::string& lock, FencingToken token) {
    FencingToken& newest = newest_[lock];
    const bool takes = blind_ || token >= newest;
    newest = std::max(newest, token);
    world_.note({.kind = Kind::served, .lock = lock, .token = token, .yes = takes});
  }

 private:
  World& world_;
  const bool blind_;
  std::map<std::string, FencingToken> newest_;
};

}  // namespace dlock::torture::simulation
