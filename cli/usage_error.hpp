#pragma once

#include <stdexcept>

namespace dlock::cli {

// The command line is wrong. The text never contains a password.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace dlock::cli
