// How a page looks.
#pragma once

#include "bench/report/page/markup.hpp"

namespace dlock::bench {

// A style element.
[[nodiscard]] const Markup& page_style();

}  // namespace dlock::bench
