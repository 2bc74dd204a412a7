#include "bench/targets/own_name.hpp"

#include <unistd.h>

#include <random>

#include <fmt/format.h>

namespace dlock::bench {

std::string own_name(char separator) {
  std::random_device device;  // the same process number may be in use on another machine
  return fmt::format("dlock{0}bench{0}{1}{0}{2:08x}", separator, ::getpid(), device());
}

}  // namespace dlock::bench
