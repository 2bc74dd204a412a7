# Makes a C++ source of the page, which stays as it is.
set(page "${CMAKE_CURRENT_LIST_DIR}/report.html")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${page}")
file(READ "${page}" text)

file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[
#include "bench/report/report_html.hpp"

namespace dlock::bench {
const char* const report_html = R"html(@text@)html";
}  // namespace dlock::bench
]])
