// A part of the page: what one scenario measured.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/report/page/groups.hpp"
#include "bench/report/page/html_table.hpp"
#include "bench/report/page/markup.hpp"
#include "bench/report/page/svg.hpp"
#include "bench/report/result.hpp"

namespace dlock::bench {

struct Section {
  std::string id;
  std::string scenario;
  std::string title;
  std::string shows;      // what is to be seen, and how to read it
  std::string note = {};  // what else is to be known
  Markup charts;          // empty: there is no data for it
  Markup numbers;
};

[[nodiscard]] Section latency_section(const Report& report);
[[nodiscard]] Section throughput_section(const Report& report);
[[nodiscard]] Section hand_off_section(const Report& report);
[[nodiscard]] Section herd_section(const Report& report);
[[nodiscard]] Section recovery_section(const Report& report);
[[nodiscard]] Section holding_section(const Report& report);
[[nodiscard]] Section distance_section(const Report& whole);
[[nodiscard]] Section mix_section(const Report& report);
[[nodiscard]] Section sharing_section(const Report& report);

// What sections are made of.

// What the lines of a picture mean. The dashed ones have the colour of that whose lock by hand, or tail, they are.
struct Legend {
  std::vector<Member> series;
  std::string dashed;  // empty: there are none
};

// A picture with a heading. One of two lines stands beside two others.
[[nodiscard]] Markup panel(std::string_view heading, const Markup& picture, const Legend& legend = {},
                           Height height = Height::one_line);

// "61.2 µs ±3 %": the median, and how far off the most deviant repeat is.
[[nodiscard]] Markup figure_cell(const Measurement* measurement, std::string_view figure);
// The ratio to by hand.
[[nodiscard]] Markup ratio_cell(const Report& report, const Measurement& measurement, std::string_view figure);

// What dlock is compared with.
inline constexpr const char* floors_text =
    "By hand is a hand-written client of the same service: blocking, on the service's own client library, with a "
    "connection for each caller. Same requests are those that dlock sends, over a bare connection.";
// Why dlock looks slow beside the floor of files. Empty where that was not measured.
[[nodiscard]] std::string file_floor_text(const Report& report);

// In a picture of all services: which of them are there for comparison only.
[[nodiscard]] std::string label_of(const Member& member);

}  // namespace dlock::bench
