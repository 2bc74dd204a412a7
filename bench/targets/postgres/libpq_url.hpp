// dlock's URL of a database as libpq takes it.
#pragma once

#include <string>

#include "torture/rig/url_text.hpp"

namespace dlock::bench {

// Without the parameters that libpq does not know, and with what dlock takes for granted where libpq does not.
[[nodiscard]] std::string libpq_url(rig::UrlText url);

}  // namespace dlock::bench
