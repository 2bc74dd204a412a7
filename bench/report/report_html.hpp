// The page without its data: report.html, which CMake makes a source of.
#pragma once

namespace dlock::bench {

extern const char* const report_html;

}  // namespace dlock::bench
