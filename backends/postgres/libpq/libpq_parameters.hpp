// The parameters of libpq that a URL may have. dlock itself decides on the others, which change the server, the rights
// or the timeouts of a connection. No I/O.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/url.hpp>

namespace dlock::postgres {

// Takes them out of the URL, except unknown ones. Throws Error(invalid_argument) that names the parameter with a bad
// value, or one that dlock does not accept, and why.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> take_libpq_parameters(Url& url);

}  // namespace dlock::postgres
