// Overwrites secrets that are no longer needed, so that they are neither in a core dump nor in memory that is reused.
// Any thread.
#pragma once

#include <string.h>

#include <string>

namespace dlock::util {

// Overwrites the whole capacity, and so earlier and longer contents, too. Leaves the text empty.
inline void wipe(std::string& text) noexcept {
  text.resize(text.capacity());  // allocates nothing
  ::explicit_bzero(text.data(), text.size());
  text.clear();
}

}  // namespace dlock::util
