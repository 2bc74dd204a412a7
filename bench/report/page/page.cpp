#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "bench/report/advice.hpp"
#include "bench/report/overview.hpp"
#include "bench/report/page/command.hpp"
#include "bench/report/page/html_table.hpp"
#include "bench/report/page/markup.hpp"
#include "bench/report/page/section.hpp"
#include "bench/report/page/style.hpp"
#include "bench/report/ratios.hpp"
#include "bench/report/report.hpp"
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
        "together. What each of them guarantees when something fails is at least as important, and is in "
        "dlock's documentation.</p>\n");
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

Markup overview_table(const Report& report) {
  const Overview overview = overview_of(report);
  HtmlTable table({"service", "free lock, p50", "free lock, p99",
                   "throughput, " + column_of(overview.callers, "caller"),
                   "hand-off, " + column_of(overview.few, "waiter"), "hand-off, " + column_of(overview.many, "waiter"),
                   "operations a hand-off", "fairness", "recovery"});
  for (const OverviewRow& row : overview.rows) {
    table.add(row.service,
              {markup("{}", quantity_text(row.p50, "us")), markup("{}", quantity_text(row.p99, "us")),
               markup("{}", counted_text(row.throughput, "1/s", overview.callers)),
               markup("{}", counted_text(row.hand_off_few, "us", overview.few)),
               markup("{}", counted_text(row.hand_off_many, "us", overview.many)),
               markup("{}", counted_text(row.operations, "", overview.many)),
               markup("{}", quantity_text(row.fairness, "")), markup("{}", quantity_text(row.recovery, "us"))});
  }
  if (table.empty()) return {};
  return markup(
      "<h2 id=\"overview\">At a glance</h2>\n<p>Medians of all repeats. A number after @ is that of the callers "
      "or waiters, where the service took fewer than the column says. Operations and fairness are with the "
      "most waiters.</p>\n{}",
      table.stacking("At a glance"));
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
  Markup part("<h2 id=\"ratios\">Against a lock by hand</h2>\n");
  const HtmlTable by_hand = ratios_table(report, Who::by_hand);
  const HtmlTable same_requests = ratios_table(report, Who::same_requests);
  if (by_hand.empty() && same_requests.empty()) return part + Markup("<p>No floor was measured.</p>\n");
  if (!by_hand.empty()) {
    part += Markup(
        "<p>dlock's figure divided by that of a lock by hand: what a user would write on the service's own client "
        "library, blocking, with a connection for each caller, measured in turns with dlock. For latency, which is the "
        "median of one caller, lower is better; for throughput higher. Asynchronous calls of one client are compared "
        "with as many callers by hand; "
        "beside them is the client's processor time for each acquire and release. Where dlock has set itself a budget, "
        "it is below the figure.</p>\n");
    part += by_hand.stacking("Against a lock by hand");
  }
  if (!same_requests.empty()) {
    part += Markup(
        "<h3>What dlock itself costs</h3>\n<p>The same, against a program that sends the same requests as dlock. "
        "Where a lock by hand sends these as well, it is measured once, for the table above.</p>\n");
    part += same_requests.stacking("Against the same requests");
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
  Markup text = markup("<section>\n<h2 id=\"{}\">{}</h2>\n", section.id, section.title);
  if (section.charts.empty()) {
    text += markup("<p>Not measured in this run.</p>\n");
  } else {
    text += markup("<p>{}</p>\n<div class=\"charts\">\n{}</div>\n", section.shows, section.charts);
    text += markup(
        "<details><summary>The numbers</summary><p class=\"soft\">Medians of the repeats; ± is how far off the most "
        "deviant one is.</p>{}</details>\n",
        section.numbers);
  }
  return text + markup("<p class=\"repeat\">To measure it{}: {}</p>\n</section>\n",
                       section.charts.empty() ? "" : " again", command_markup(command_for(report, section.scenario)));
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

Markup navigation(const std::vector<Section>& sections) {
  Markup links("<nav aria-label=\"Parts of this page\">");
  for (const Section& each : sections) links += markup("<a href=\"#{}\">{}</a>", each.id, each.title);
  return links + Markup(
                     "<a href=\"#ratios\">Against a lock by hand</a><a href=\"#environment\">Where it was measured</a>"
                     "</nav>\n");
}

}  // namespace

std::string to_html(const Report& report) {
  const std::vector<Section> sections = {latency_section(report),  throughput_section(report), hand_off_section(report),
                                         herd_section(report),     recovery_section(report),   holding_section(report),
                                         distance_section(report), mix_section(report),        sharing_section(report)};
  Markup page(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>dlock bench: which service to lock with</title>\n");
  page += page_style();
  page += Markup("</head>\n<body>\n<main>\n");
  page += head_of(report);
  page += summary_of(report);
  page += overview_table(report);
  page += navigation(sections);
  for (const Section& each : sections) page += section_text(each, report);
  page += ratios_text(report);
  page += problems_text(report);
  page += environment_text(report);
  page += Markup("</main>\n</body>\n</html>\n");
  return page.str();
}

}  // namespace dlock::bench
