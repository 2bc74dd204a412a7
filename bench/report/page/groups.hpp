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
  std::size_t series = 0;  // its mark, the same in all pictures
  std::size_t colour = 0;
  bool baseline = false;  // shown for comparison only
};

struct Group {
  std::string id;  // for the page; the backend's name may be anything
  std::string backend;
  std::vector<Member> members;
};

// A colour for each service of a backend.
[[nodiscard]] std::vector<Group> groups_of(const Report& report);
// All in one, with a colour for each backend.
[[nodiscard]] Group together(const std::vector<Group>& groups);

}  // namespace dlock::bench
