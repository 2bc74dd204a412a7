#include "bench/targets/target.hpp"

#include <utility>

namespace dlock::bench {

Client Target::connect(std::size_t locks, ClientOptions options) const {
  return dlock::connect(url(locks), std::move(options));
}

}  // namespace dlock::bench
