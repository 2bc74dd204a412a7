// A file:// URL.
#pragma once

#include <sys/types.h>

#include <string>

#include <dlock/spi/url.hpp>

namespace dlock::file {

struct Location {
  std::string path;
  mode_t mode = 0700;  // of directories that are made
};

// Throws Error(invalid_argument) naming the part that is wrong.
[[nodiscard]] Location parse_location(Url url);

}  // namespace dlock::file
