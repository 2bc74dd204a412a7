// Arbitrary text as a duration: refused, or one that is not negative and is read again as it is printed.
#include <dlock/spi/url.hpp>

#include "tests/fuzz/checks.hpp"
#include "util/duration_text.hpp"

using dlock::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto duration = dlock::parse_duration(dlock::fuzz::as_text(data, size));
  if (!duration) return 0;
  require(*duration >= dlock::Duration());
  require(dlock::parse_duration(dlock::util::to_text(duration->value())) == duration);
  return 0;
}
