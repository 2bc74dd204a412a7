// The parameters of libpq that a URL may have. A white list: what changes where a connection leads, what it may do or
// how it counts time is dlock's own business. No I/O.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/url.hpp>

namespace dlock::postgres {

// Takes them out of the URL. Throws Error(invalid_argument) naming the parameter that has a bad value, or that dlock
// does not hand on, and why. Unknown parameters are left in the URL.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> take_libpq_parameters(Url& url);

}  // namespace dlock::postgres
