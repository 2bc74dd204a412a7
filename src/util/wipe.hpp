// Overwrites secrets that are no longer needed, so that they stand neither in a core dump nor in memory that is handed
// out again. Any thread.
#pragma once

#include <string.h>

#include <string>

namespace dlock::util {

// All of the text's memory, what it held before it became shorter or was moved from included. Leaves it empty.
inline void wipe(std::string& text) noexcept {
  text.resize(text.capacity());  // allocates nothing
  ::explicit_bzero(text.data(), text.size());
  text.clear();
}

}  // namespace dlock::util
