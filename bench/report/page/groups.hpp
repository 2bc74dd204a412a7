// The services of a report by backend: a picture with all of them would be a tangle.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/report/result.hpp"

namespace dlock::bench {

struct Member {
  std::string label;
  std::string name;        // without the backend, where there is a strategy; not too long for a picture
  std::size_t series = 0;  // its colour and mark, the same in all charts
  bool baseline = false;   // shown for comparison only
};

struct Group {
  std::string id;  // for the page; the backend's name may be anything
  std::string backend;
  std::vector<Member> members;
};

[[nodiscard]] std::vector<Group> groups_of(const Report& report);

}  // namespace dlock::bench
