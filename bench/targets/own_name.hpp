// What the traces of one run are called in a service, so that they are unique and can be removed.
#pragma once

#include <string>

namespace dlock::bench {

// "dlock-bench-<process>-<random>", with that character between its parts; another one at each call.
[[nodiscard]] std::string own_name(char separator = '-');

}  // namespace dlock::bench
