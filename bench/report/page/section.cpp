#include "bench/report/page/section.hpp"

#include "bench/report/page/line_chart.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

Markup panel(std::string_view heading, const Markup& picture, const Legend& legend) {
  Markup keys;
  for (const Member& each : legend.series) keys += markup("<li>{}{}</li>", draw_key(each.series), each.name);
  if (!legend.dashed.empty()) keys += markup("<li>{}{}</li>", draw_dashed_key(), legend.dashed);
  if (!keys.empty()) keys = markup(R"(<ul class="legend">{}</ul>)", keys);
  return markup("<figure><figcaption><h3>{}</h3></figcaption>{}{}</figure>\n", heading, picture, keys);
}

Markup tall_panel(std::string_view heading, const Markup& picture) {
  return markup("<figure class=\"tall\"><figcaption><h3>{}</h3></figcaption>{}</figure>\n", heading, picture);
}

Markup figure_cell(const Measurement* measurement, std::string_view figure) {
  const auto median = median_of(measurement, figure);
  if (!median) return Markup(not_measured);
  const Figure& found = *measurement->figure(figure);
  Markup cell = markup("{}", quantity_text(*median, found.unit));
  if (found.lowest() < found.highest()) {
    cell += markup(R"( <span class="soft">({} to {})</span>)", quantity_text(found.lowest(), found.unit),
                   quantity_text(found.highest(), found.unit));
  }
  return cell;
}

std::string label_of(const Member& member) {
  return member.baseline ? member.label + " (one process only)" : member.label;
}

}  // namespace dlock::bench
