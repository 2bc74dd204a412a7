#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "bench/report/advice.hpp"
#include "bench/report/durability.hpp"
#include "bench/report/overview.hpp"
#include "bench/report/page/command.hpp"
#include "bench/report/page/html_table.hpp"
#include "bench/report/page/markup.hpp"
#include "bench/report/page/section.hpp"
#include "bench/report/page/style.hpp"
#include "bench/report/ratios.hpp"
#include "bench/report/report.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

std::string environment_value(const Report& report, std::string_view name) {
  const auto found = std::find_if(report.environment.begin(), report.environment.end(),
                                  [&](const auto& each) { return each.first == name; });
  return found == report.environment.end() ? "" : found->second;
}

Markup head_of(const Report& report) {
  Markup head = markup("<h1>Which service to lock with</h1>\n<p class=\"soft\">Measured by dlock bench, {}, in {}",
                       report.started, duration_text(report.seconds));
  const std::string processor = environment_value(report, "processor");
  if (!processor.empty()) head += markup(", on {}", processor);
  head += Markup(".</p>\n");
  if (report.quick) {
    head +=
        Markup("<p class=\"note\">A quick run: few and short repeats. Good for a first look, not for decisions.</p>\n");
  }
  if (!report.complete) {
    head += Markup("<p class=\"note\">The run was interrupted: this is what was measured until then.</p>\n");
  }
  if (environment_value(report, "optimised") == "no") {
    head += Markup("<p class=\"note\">dlock was built without optimisation: its figures are too high.</p>\n");
  }
  return head;
}

Markup herds_text(const Report& report) {
  Markup herds;
  for (const Herd& each : herds_of(report)) {
    herds +=
        markup("<li><strong>{}</strong>: {} with {}, {} with {}</li>\n", each.service, number_text(each.many.value),
               count_text(each.many.count, "waiter"), number_text(each.few.value), count_text(each.few.count, ""));
  }
  if (herds.empty()) return {};
  return markup(
      "<div class=\"note\">Beware of the <a href=\"#herd\">herd</a>: with these, the more wait for a lock, the "
      "more the service works for each hand-off. Server operations:\n<ul class=\"herd\">{}</ul></div>\n",
      herds);
}

Markup summary_of(const Report& report) {
  Markup boxes;
  for (const Advice& each : advice_of(report)) {
    boxes += markup("<div><dt>{}</dt><dd class=\"answer\">{}</dd><dd class=\"why\">{}</dd></div>\n", each.question,
                    each.answer, each.why);
  }
  Markup summary("<h2 id=\"summary\">Which one, for what</h2>\n");
  if (boxes.empty()) {
    summary += Markup("<p>Nothing was measured that could tell.</p>\n");
  } else {
    summary += Markup(
        "<p>What these measurements say. Services that cannot be told apart within the noise are named "
        "together. <a href=\"#safety\">What each of them forgets</a> when something fails is at least as "
        "important.</p>\n");
    summary += markup("<dl class=\"advice\">{}</dl>\n", boxes);
  }
  summary += herds_text(report);
  const bool memory = std::any_of(report.services.begin(), report.services.end(),
                                  [](const ServiceInfo& each) { return each.backend == "memory"; });
  if (memory) {
    summary += Markup(
        "<p class=\"soft\">memory:// is shown as a baseline: what dlock itself costs. Its locks are known "
        "to one process only, so it is never the answer for several.</p>\n");
  }
  return summary;
}

std::string column_of(double count, const std::string& noun) {
  return count == 0 ? noun + "s" : count_text(count, noun);
}

struct OverviewColumn {
  std::string name;
  const char* unit;
  Better better;
  double usual;  // number of callers or waiters
  std::optional<Counted> (*cell)(const OverviewRow& row);
};

std::optional<Counted> counted(const std::optional<double>& figure) {
  return figure ? std::optional(Counted{0, *figure}) : std::nullopt;
}

std::vector<OverviewColumn> overview_columns(const Overview& overview) {
  using Row = OverviewRow;
  return {{"free lock, p50", "us", Better::lower, 0, [](const Row& row) { return counted(row.p50); }},
          {"free lock, p99", "us", Better::lower, 0, [](const Row& row) { return counted(row.p99); }},
          {"throughput, " + column_of(overview.callers, "caller"), "1/s", Better::higher, overview.callers,
           [](const Row& row) { return row.throughput; }},
          {"hand-off, " + column_of(overview.few, "waiter"), "us", Better::lower, overview.few,
           [](const Row& row) { return row.hand_off_few; }},
          {"hand-off, " + column_of(overview.many, "waiter"), "us", Better::lower, overview.many,
           [](const Row& row) { return row.hand_off_many; }},
          {"operations a hand-off", "", Better::lower, overview.many, [](const Row& row) { return row.operations; }},
          {"fairness", "", Better::higher, 0, [](const Row& row) { return counted(row.fairness); }},
          {"recovery", "us", Better::lower, 0, [](const Row& row) { return counted(row.recovery); }}};
}

Markup safety_cell(const ServiceInfo* service) {
  if (service == nullptr) return Markup(not_measured);
  if (!between_machines(*service)) return Markup("<a href=\"#safety\">no server</a>");
  return markup("<a href=\"#safety\">crash: {}<br/>failover: {}</a>", lost_text(durability_of(*service)),
                lost_text(failover_of(*service)));
}

constexpr const char* safety_text =
    "<h3 id=\"safety\">Safety: what a service forgets</h3>\n<p>When a service forgets a lock, it grants it again while "
    "the first holder still works. The last column says what may be forgotten with the settings that were measured: in "
    "a crash of the server or of its machine, and in a failover, when another server takes over. The last grants are "
    "those of the moments before. A failover of PostgreSQL to a synchronous standby forgets nothing of what is in its "
    "tables. Without a server, the kernel or the process keeps the locks, and a crash ends their holders as well. "
    "<code>docs/guarantees.md</code> and <code>docs/choosing-a-backend.md</code> of dlock say what follows from that."
    "</p>\n";

Markup overview_table(const Report& report) {
  const Overview overview = overview_of(report);
  if (overview.rows.empty()) return {};
  const std::vector<OverviewColumn> columns = overview_columns(overview);
  std::vector<std::string> head = {"service"};
  for (const OverviewColumn& each : columns) head.push_back(each.name);
  head.emplace_back("safety: what is lost");
  HtmlTable table(std::move(head));
  for (const OverviewRow& row : overview.rows) {
    std::vector<Markup> cells;
    for (const OverviewColumn& each : columns) {
      cells.push_back(markup("{}", counted_text(each.cell(row), each.unit, each.usual)));
    }
    cells.push_back(safety_cell(service_of(report, row.service)));
    table.add(row.service, std::move(cells));
  }
  const bool shared = std::any_of(report.services.begin(), report.services.end(), between_machines);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::vector<HtmlTable::Rated> values;
    for (const OverviewRow& row : overview.rows) {
      const auto cell = columns[i].cell(row);
      const ServiceInfo* service = service_of(report, row.service);
      const bool takes_part =
          service != nullptr && (shared ? between_machines(*service) : service->backend != "memory");
      values.push_back(
          {cell ? std::optional(cell->value) : std::nullopt, takes_part && cell && cell->count == columns[i].usual});
    }
    table.rate(i, values, columns[i].better);
  }
  return markup(
             "<h2 id=\"overview\">At a glance</h2>\n<p>Medians of all repeats. ★ is the best of a column{}; a bar is "
             "as "
             "long as the value is large. A number after @ is that of the callers or waiters, where the service took "
             "fewer than the column says. Operations and fairness are with the most waiters.</p>\n{}",
             shared ? ", among services that several machines can share" : "", table.stacking("At a glance")) +
         Markup(safety_text);
}

Markup ratio_cell(const std::optional<Ratio>& cell) {
  if (!cell) return Markup(not_measured);
  Markup result = markup("{}", ratio_text(*cell));
  if (!cell->budget) return result;
  result += markup("<br/><span class=\"{}\">{}{}</span>", cell->missed() ? "bad" : "good", budget_text(*cell->budget),
                   cell->missed() ? " missed" : " met");
  return result;
}

HtmlTable ratios_table(const Report& report, Who floor) {
  const Ratios ratios = ratios_of(report, floor);
  std::vector<std::string> head = {"service"};
  head.insert(head.end(), ratios.columns.begin(), ratios.columns.end());
  HtmlTable table(std::move(head));
  for (const Ratios::Row& row : ratios.rows) {
    std::vector<Markup> cells;
    cells.reserve(row.cells.size());
    for (const auto& each : row.cells) cells.push_back(ratio_cell(each));
    table.add(row.service, std::move(cells));
  }
  return table;
}

Markup ratios_text(const Report& report) {
  Markup part("<h2 id=\"ratios\">Against the floors</h2>\n");
  const HtmlTable by_hand = ratios_table(report, Who::by_hand);
  const HtmlTable same_requests = ratios_table(report, Who::same_requests);
  if (by_hand.empty() && same_requests.empty()) return part + Markup("<p>No floor was measured.</p>\n");
  part += markup(
      "<p>dlock's figure divided by that of a floor, which is measured in turns with dlock. For latency, which is the "
      "median of one caller, lower is better; for throughput higher. {}{}</p>\n",
      floors_text, file_floor_text(report));
  if (!by_hand.empty()) {
    part += Markup(
        "<h3>By hand: a hand-written client of the same service</h3>\n<p>Asynchronous calls of one client are compared "
        "with as many callers by hand; beside them is the client's processor time for each acquire and release. Where "
        "dlock has set itself a budget, it is below the figure.</p>\n");
    part += by_hand.stacking("By hand");
  }
  if (!same_requests.empty()) {
    part += Markup(
        "<h3>Same requests, over a bare connection: what dlock itself costs</h3>\n<p>Where a client by hand sends the "
        "requests that dlock sends, it is measured once, for the table above.</p>\n");
    part += same_requests.stacking("Same requests");
  }
  return part;
}

// Lines break between words, not at the hyphens of an option.
Markup command_markup(std::string_view command) {
  Markup words;
  while (!command.empty()) {
    const auto end = std::min(command.find(' '), command.size());
    words += markup("{}<span>{}</span>", words.empty() ? "" : " ", command.substr(0, end));
    command.remove_prefix(std::min(end + 1, command.size()));
  }
  return markup("<code>{}</code>", words);
}

Markup section_text(const Section& section, const Report& report) {
  return markup(
      "<section>\n<h2 id=\"{}\">{}</h2>\n<p>{}</p>\n{}<div class=\"charts\">\n{}</div>\n<details><summary>The "
      "numbers</summary><p class=\"soft\">Medians of the repeats; ± is how far off the most deviant one is.</p>{}"
      "</details>\n<p class=\"repeat\">To measure it again: {}</p>\n</section>\n",
      section.id, section.title, section.shows,
      section.note.empty() ? Markup() : markup("<p class=\"soft\">{}</p>\n", section.note), section.charts,
      section.numbers, command_markup(command_for(report, {section.scenario})));
}

// A service may have no such figure though the scenario was measured.
Markup missing_text(const std::vector<Section>& missing, const Report& report) {
  if (missing.empty()) return {};
  std::string titles;
  std::vector<std::string> scenarios;
  for (const Section& each : missing) {
    titles += (titles.empty() ? "" : "; ") + each.title;
    const bool measured = std::any_of(report.measurements.begin(), report.measurements.end(),
                                      [&](const Measurement& other) { return other.scenario == each.scenario; });
    const bool named = std::find(scenarios.begin(), scenarios.end(), each.scenario) != scenarios.end();
    if (!measured && !named) scenarios.push_back(each.scenario);
  }
  Markup text = markup("<p id=\"missing\"><strong>Without figures in this run:</strong> {}.", titles);
  if (!scenarios.empty()) {
    text += markup("<span class=\"repeat\"> To measure what is missing: {}</span>",
                   command_markup(command_for(report, scenarios)));
  }
  return text + Markup("</p>\n");
}

Markup problems_text(const Report& report) {
  if (report.problems.empty()) return {};
  Markup lines;
  for (const Problem& each : report.problems) {
    lines += markup("<li><strong>{}</strong>{}{}: {}</li>\n", each.service, each.scenario.empty() ? "" : ", ",
                    each.scenario, each.message);
  }
  return markup("<h2 id=\"problems\">What could not be measured</h2>\n<ul>\n{}</ul>\n", lines);
}

Markup settings_text(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings) text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, value);
  return markup("{}", text.empty() ? not_measured : text.c_str());
}

Markup environment_text(const Report& report) {
  Markup machine;
  for (const auto& [name, value] : report.environment) machine += markup("<dt>{}</dt><dd>{}</dd>\n", name, value);
  HtmlTable services({"service", "URL", "settings"});
  for (const ServiceInfo& each : report.services) {
    services.add(each.label, {markup("<code>{}</code>", each.url), settings_text(each.settings)});
  }
  Markup text(
      "<h2 id=\"environment\">Where it was measured</h2>\n<p>On another machine, another network or with other "
      "settings of the servers, the answers may be others.</p>\n<div class=\"words\">");
  if (!machine.empty()) text += markup("<dl class=\"settings\">{}</dl>\n", machine);
  if (!services.empty()) text += markup("<h3>Services</h3>{}", services.stacking("Services"));
  return text +
         markup("</div>\n<p class=\"repeat\">The whole run again: {}</p>\n", command_markup(whole_command(report)));
}

Markup navigation(const std::vector<Section>& sections, const Report& report) {
  Markup links;
  const auto add = [&](const std::string& id, const std::string& title) {
    links += markup("<a href=\"#{}\">{}</a>", id, title);
  };
  add("summary", "Which one, for what");
  if (!labels_of(report).empty()) {
    add("overview", "At a glance");
    add("safety", "Safety");
  }
  for (const Section& each : sections) add(each.id, each.title);
  add("ratios", "Against the floors");
  if (!report.problems.empty()) add("problems", "What could not be measured");
  add("environment", "Where it was measured");
  return markup("<nav aria-label=\"Contents\">{}</nav>\n", links);
}

}  // namespace

std::string to_html(const Report& report) {
  std::vector<Section> sections = {latency_section(report),  throughput_section(report), hand_off_section(report),
                                   herd_section(report),     recovery_section(report),   holding_section(report),
                                   distance_section(report), mix_section(report),        sharing_section(report)};
  const auto first_missing =
      std::stable_partition(sections.begin(), sections.end(), [](const Section& each) { return !each.charts.empty(); });
  const std::vector<Section> missing(first_missing, sections.end());
  sections.erase(first_missing, sections.end());
  Markup page(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>dlock bench: which service to lock with</title>\n");
  page += page_style();
  page += Markup("</head>\n<body>\n<main>\n");
  page += head_of(report);
  page += navigation(sections, report);
  page += summary_of(report);
  page += overview_table(report);
  for (const Section& each : sections) page += section_text(each, report);
  page += missing_text(missing, report);
  page += ratios_text(report);
  page += problems_text(report);
  page += environment_text(report);
  page += Markup("</main>\n</body>\n</html>\n");
  return page.str();
}

}  // namespace dlock::bench
