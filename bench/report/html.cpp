// The page: report.html with the report as JSON for its script, and with tables of the same data without scripts.
#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "bench/report/figures.hpp"
#include "bench/report/report.hpp"
#include "bench/report/tables.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

std::string_view bench_text(std::string_view name);  // a file of this directory, without ".html"

namespace {

using Values = std::map<std::string, std::string, std::less<>>;

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

// In JSON, '<' is always part of a text. Escaped, it can neither end the script nor begin a comment.
std::string script_json(const Report& report) {
  std::string result;
  for (const char c : to_json(report)) result += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return result;
}

// {{name}} becomes the value; {{#name}}...{{/name}} is omitted if there is none. Values are not expanded.
std::string filled(std::string_view page, const Values& values) {
  const auto value_of = [&](std::string_view name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string_view() : std::string_view(found->second);
  };
  std::string result;
  for (;;) {
    const auto begin = page.find("{{");
    result += page.substr(0, begin);
    if (begin == std::string_view::npos) return result;
    const auto end = page.find("}}", begin);
    std::string_view name = page.substr(begin + 2, end - begin - 2);
    page.remove_prefix(end + 2);
    if (name.starts_with('#')) {
      const std::string closing = fmt::format("{{{{/{}}}}}", name.substr(1));
      if (value_of(name.substr(1)).empty()) page.remove_prefix(page.find(closing) + closing.size());
    } else if (!name.starts_with('/')) {
      result += value_of(name);
    }
  }
}

// The unit of a number is smaller: "45.1 µs".
std::string number_markup(std::string_view text) {
  const auto blank = text.find(' ');
  if (blank == std::string_view::npos) return escaped(text);
  return fmt::format("{} <small>{}</small>", escaped(text.substr(0, blank)), escaped(text.substr(blank + 1)));
}

std::string cell_markup(const Table::Column& column, const Cell& cell, double longest) {
  std::string content = column.words ? escaped(cell.text) : number_markup(cell.text);
  if (cell.best) content = R"(<b class="best"><span role="img" aria-label="best">★</span> )" + content + "</b>";
  if (cell.budget) {
    content += fmt::format(R"(<br><span class="{}">{} {}</span>)", cell.missed ? "bad" : "good", escaped(cell.note),
                           cell.missed ? "missed" : "met");
  } else if (!cell.note.empty()) {
    content += fmt::format(" <small>{}</small>", escaped(cell.note));
  }
  std::string attributes = column.words ? R"( class="words")" : "";
  if (cell.rival && longest > 0) {
    attributes = fmt::format(R"( style="--long:{:.1f}")", 100 * std::clamp(*cell.value / longest, 0.0, 1.0));
  }
  return fmt::format(R"(<td role="cell" data-label="{}"{}><span>{}</span></td>)", escaped(column.name), attributes,
                     content);
}

double longest_of(const Table& table, std::size_t column) {
  double longest = 0;
  for (const Table::Row& each : table.rows) {
    if (each.cells[column].rival) longest = std::max(longest, *each.cells[column].value);
  }
  return longest;
}

// Roles, because browsers do not treat rows laid out as blocks on a narrow page as a table.
std::string table_markup(const Table& table, std::string_view css_class, std::string_view caption) {
  if (table.rows.empty()) return {};
  std::string text = fmt::format(R"(<div class="scroll" tabindex="0" role="region" aria-label="{0}">)"
                                 R"(<table class="{1}" role="table"><caption>{0}</caption><thead role="rowgroup">)"
                                 R"(<tr role="row"><th scope="col" role="columnheader">service</th>)",
                                 escaped(caption), css_class);
  for (const Table::Column& each : table.columns) {
    const auto comma = std::min(each.name.find(", "), each.name.size());
    text += fmt::format(R"(<th scope="col" role="columnheader"{}>{}{}</th>)", each.words ? R"( class="words")" : "",
                        escaped(each.name.substr(0, comma)),
                        comma < each.name.size() ? ",<br>" + escaped(each.name.substr(comma + 2)) : "");
  }
  text += "</tr></thead>\n<tbody role=\"rowgroup\">";
  for (const Table::Row& row : table.rows) {
    text += fmt::format(R"(<tr role="row"><th scope="row" role="rowheader">{}</th>)", escaped(row.name));
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      text += cell_markup(table.columns[i], row.cells[i], longest_of(table, i));
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

// The section of the page with this measurement.
std::string_view section_of(const Measurement& measurement) {
  const auto has = [&](const char* name) { return measurement.parameter(name).has_value(); };
  if (has(parameter::round_trip_ms)) return "distance";
  if (has(parameter::held)) return "holding";
  if (has(parameter::names)) return "mix";
  if (has(parameter::reads) || has(parameter::permits) || has(parameter::readers)) return "sharing";
  return measurement.scenario;
}

Cell figure_cell(const Measurement& measurement, const std::string& name) {
  const auto median = median_of(&measurement, name);
  if (!median) return {};
  const Figure& figure = *measurement.figure(name);
  if (*median == 0) return {.text = quantity_text(*median, figure.unit)};
  const double off = std::max(figure.highest() - *median, *median - figure.lowest()) / std::abs(*median) * 100;
  return {.text = quantity_text(*median, figure.unit), .note = off >= 0.5 ? fmt::format("±{:.0f} %", off) : ""};
}

// All figures of a section.
Table numbers_of(const Report& report, std::string_view section) {
  Table table{.columns = {{.name = "measured", .words = true}}, .rows = {}};
  std::vector<const Measurement*> measurements;
  for (const std::string& label : report.labels()) {
    for (const Measurement& each : report.measurements) {
      if (each.service != label || section_of(each) != section) continue;
      measurements.push_back(&each);
      for (const Figure& figure : each.figures) {
        const bool known = std::any_of(table.columns.begin(), table.columns.end(),
                                       [&](const Table::Column& other) { return other.name == figure.name; });
        if (!known) table.columns.push_back({figure.name});
      }
    }
  }
  for (const Measurement* each : measurements) {
    Table::Row& row = table.rows.emplace_back(Table::Row{each->service, {{.text = name_of(*each)}}});
    for (std::size_t i = 1; i < table.columns.size(); ++i)
      row.cells.push_back(figure_cell(*each, table.columns[i].name));
  }
  return table;
}

std::string quoted(const std::string& word) {
  constexpr std::string_view harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@,+%=";
  if (!word.empty() && word.find_first_not_of(harmless) == std::string::npos) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// A command that repeats the run. A report's command has no URLs, which may have a password.
std::string command_of(const Report& report) {
  std::string command = report.command.empty() ? "dlock bench" : report.command;
  if (command.find("--url") != std::string::npos) return command;
  std::set<std::string> named;
  for (const ServiceInfo& each : report.services) {
    if (named.insert(each.url).second) command += " --url " + quoted(each.url);
  }
  return command;
}

// Prevents line breaks at the hyphens of an option.
std::string command_markup(std::string_view command) {
  std::string words;
  for (const char c : command) words += c == ' ' ? std::string("</span> <span>") : escaped({&c, 1});
  return "<code><span>" + words + "</span></code>";
}

struct Section {
  std::string_view id;
  const char* scenario;
  const char* name;
};

constexpr Section sections[] = {
    {"latency", scenario::latency, "latency"},       {"throughput", scenario::throughput, "throughput"},
    {"contention", scenario::contention, "waiters"}, {"recovery", scenario::recovery, "recovery"},
    {"distance", scenario::latency, "round trips"},  {"holding", scenario::throughput, "holding"},
    {"mix", scenario::contention, "a mix of names"}, {"sharing", scenario::throughput, "sharing"},
};

// A service may lack a figure although the scenario was measured; only a missing scenario is worth another run.
std::string missing_markup(const Report& report, const Values& values) {
  std::string names;
  std::set<std::string> options;
  for (const Section& each : sections) {
    if (!values.at(std::string(each.id)).empty()) continue;
    names += (names.empty() ? "" : ", ") + std::string(each.name);
    const bool measured = std::any_of(report.measurements.begin(), report.measurements.end(),
                                      [&](const Measurement& other) { return other.scenario == each.scenario; });
    if (!measured) options.insert(std::string(" --scenario ") + each.scenario);
  }
  if (names.empty()) return {};
  std::string text = "Without figures in this run: " + names + ".";
  if (options.empty()) return text;
  std::string command = std::regex_replace(command_of(report), std::regex(" --scenario [a-z]+"), "");
  for (const std::string& each : options) command += each;
  return text + " " + command_markup(command);
}

std::string problems_markup(const Report& report) {
  std::string items;
  for (const Problem& each : report.problems) {
    items += fmt::format("<li><b>{}</b>{}{}: {}</li>\n", escaped(each.service), each.scenario.empty() ? "" : ", ",
                         escaped(each.scenario), escaped(each.message));
  }
  return items;
}

std::string environment_value(const Report& report, std::string_view name) {
  for (const auto& [key, value] : report.environment) {
    if (key == name) return value;
  }
  return {};
}

Table services_of(const Report& report) {
  Table table{.columns = {{.name = "URL", .words = true}, {.name = "settings", .words = true}}, .rows = {}};
  for (const ServiceInfo& each : report.services) {
    std::string settings;
    for (const auto& [name, value] : each.settings) {
      settings += fmt::format("{}{}: {}", settings.empty() ? "" : ", ", name, value);
    }
    table.rows.push_back({each.label, {{.text = each.url}, {.text = settings.empty() ? not_measured : settings}}});
  }
  return table;
}

std::string environment_markup(const Report& report) {
  std::string items;
  for (const auto& [name, value] : report.environment) {
    items += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(name), escaped(value));
  }
  return items;
}

std::string notes_markup(const Report& report) {
  std::string notes;
  const auto add = [&](bool applies, const char* text) {
    if (applies) notes += fmt::format("<p class=\"note\">{}</p>\n", text);
  };
  add(report.quick, "A quick run: few and short repeats. Good for a first look, not for decisions.");
  add(!report.complete, "The run was interrupted: this is what was measured until then.");
  add(environment_value(report, "optimised") == "no",
      "dlock was built without optimisation: its figures are too high.");
  return notes;
}

}  // namespace

std::string to_html(const Report& report) {
  Values values{{"started", escaped(report.started)},
                {"duration", duration_text(report.seconds)},
                {"processor", escaped(environment_value(report, "processor"))},
                {"notes", notes_markup(report)},
                {"overview", table_markup(overview_table(report), "stack", "All services at a glance")},
                {"ratios", table_markup(ratios_table(report), "stack", "Ratios to the lock by hand")},
                {"problems", problems_markup(report)},
                {"environment", environment_markup(report)},
                {"services", table_markup(services_of(report), "stack", "Services")},
                {"command", command_markup(command_of(report))},
                {"json", script_json(report)}};
  for (const Section& each : sections) {
    values[std::string(each.id)] = table_markup(numbers_of(report, each.id), "",
                                                "Medians of the repeats; ± is how far off the most deviant one is");
  }
  values["missing"] = missing_markup(report, values);
  return filled(bench_text("report"), values);
}

}  // namespace dlock::bench
