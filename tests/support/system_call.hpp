// System calls, as tests make them: what goes wrong is an exception.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

#include "util/unique_fd.hpp"

namespace dlock::test {

using util::UniqueFd;

// The result of a system call that must succeed.
template <class T>
T require(T result, const std::string& what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

}  // namespace dlock::test
