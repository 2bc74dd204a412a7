#include "bench/report/page/section.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "bench/report/page/line_chart.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/text_table.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

Markup panel(std::string_view heading, const Markup& picture, const Legend& legend, Height height) {
  Markup keys;
  for (const Member& each : legend.series)
    keys += markup("<li>{}{}</li>", draw_key(each.series, each.colour), each.name);
  if (!legend.dashed.empty()) keys += markup("<li>{}{}</li>", draw_dashed_key(), legend.dashed);
  if (!keys.empty()) keys = markup(R"(<ul class="legend">{}</ul>)", keys);
  return markup("<figure{}><figcaption><h3>{}</h3></figcaption>{}{}</figure>\n",
                Markup(height == Height::two_lines ? R"( class="tall")" : ""), heading, picture, keys);
}

Markup figure_cell(const Measurement* measurement, std::string_view figure) {
  const auto median = median_of(measurement, figure);
  if (!median) return Markup(not_measured);
  const Figure& found = *measurement->figure(figure);
  Markup cell = markup("{}", quantity_text(*median, found.unit));
  const double off = std::max(found.highest() - *median, *median - found.lowest()) / std::abs(*median) * 100;
  if (off >= 0.5) cell += markup(R"( <span class="soft">±{:.0f} %</span>)", off);
  return cell;
}

Markup ratio_cell(const Report& report, const Measurement& measurement, std::string_view figure) {
  const double ratio = ratio_to_floor(report, measurement, Who::by_hand, figure);
  return markup("{}", ratio > 0 ? fmt::format("{:.2f}", ratio) : not_measured);
}

std::string file_floor_text(const Report& report) {
  const bool measured =
      std::any_of(report.measurements.begin(), report.measurements.end(), [&](const Measurement& each) {
        const ServiceInfo* service = service_of(report, each.service);
        return each.who == Who::by_hand && service != nullptr && service->backend == "file";
      });
  if (!measured) return {};
  return " The floor of file is the fastest, because no server takes part: each caller by hand makes a few system "
         "calls "
         "by itself, on all processors at the same time. dlock's own work shows beside them in full, and one thread of "
         "its client makes all asynchronous calls; so a throughput far below the floor's is expected there.";
}

std::string label_of(const Member& member) {
  constexpr std::size_t most = 31;  // what remains of a line of a picture beside the value
  return shortened(member.baseline ? member.label + " (one process only)" : member.label, most);
}

}  // namespace dlock::bench
