// System calls that must succeed: a failure is an exception.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

#include "util/unique_fd.hpp"

namespace dlock::rig {

using util::UniqueFd;

// Throws errno's error.
[[noreturn]] inline void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// The result of a system call that must succeed.
template <class T>
T require(T result, const std::string& what) {
  if (result < 0) fail(what);
  return result;
}

}  // namespace dlock::rig
