#include <array>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "bench/report/report.hpp"
#include "bench/report/tables.hpp"

namespace dlock::bench {

namespace {

using Json = nlohmann::ordered_json;

// Counts up when a reader of the old form would misunderstand the new one.
constexpr int schema_version = 2;

constexpr std::array betters = {std::pair{Better::lower, "lower"}, std::pair{Better::higher, "higher"},
                                std::pair{Better::neither, "neither"}};
constexpr std::array whos = {std::pair{Who::dlock, "dlock"}, std::pair{Who::by_hand, "by hand"}};

template <typename Make>
Json array_of(const auto& range, const Make& make) {
  Json result = Json::array();
  for (const auto& each : range) result.push_back(make(each));
  return result;
}

Json settings_json(const Settings& settings) {
  return array_of(settings, [](const auto& each) { return Json{{"name", each.first}, {"value", each.second}}; });
}

Json service_json(const ServiceInfo& service) {
  return {{"label", service.label},
          {"backend", service.backend},
          {"strategy", service.strategy},
          {"url", service.url},
          {"settings", settings_json(service.settings)},
          {"crash", service.crash},
          {"failover", service.failover}};
}

Json figure_json(const Figure& figure) {
  Json repeats = Json::array();
  for (const double each : figure.repeats) {
    if (std::isfinite(each)) repeats.push_back(each);  // JSON has no other numbers
  }
  return {{"name", figure.name},
          {"unit", figure.unit},
          {"better", betters[static_cast<std::size_t>(figure.better)].second},
          {"repeats", repeats}};
}

Json measurement_json(const Measurement& measurement) {
  return {{"scenario", measurement.scenario},
          {"service", measurement.service},
          {"who", to_string(measurement.who)},
          {"parameters", measurement.parameters},
          {"figures", array_of(measurement.figures, figure_json)},
          {"cdf", array_of(measurement.cdf, [](const CdfPoint& each) {
             return Json::array({each.microseconds, each.share});
           })}};
}

Json ratios_json(const Table& table) {
  Json result = Json::array();
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const auto& [name, better, fits_terminal, words] = table.columns[i];
    for (const Table::Row& row : table.rows) {
      const Cell& cell = row.cells[i];
      if (!cell.value) continue;
      Json json{{"service", row.name}, {"column", name}, {cell.unit.empty() ? "ratio" : "value", *cell.value}};
      if (!cell.unit.empty()) json["unit"] = cell.unit;
      if (cell.budget) json["budget"] = Json{{better == Better::lower ? "at most" : "at least", *cell.budget}};
      json["missed"] = cell.missed;
      result.push_back(std::move(json));
    }
  }
  return result;
}

Json problem_json(const Problem& problem) {
  return {{"service", problem.service}, {"scenario", problem.scenario}, {"message", problem.message}};
}

// A part of the file with its path, for errors.
class Part {
 public:
  Part(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  [[noreturn]] void refuse(const std::string& why) const {
    throw std::runtime_error((path_.empty() ? std::string("the report") : path_) + ": " + why);
  }

  [[nodiscard]] Part operator[](const char* name) const {
    if (!json_.is_object()) refuse("is not an object");
    const auto found = json_.find(name);
    if (found == json_.end()) refuse(fmt::format("\"{}\" is missing", name));
    return {*found, path_.empty() ? name : path_ + "." + name};
  }

  [[nodiscard]] std::string text() const {
    if (!json_.is_string()) refuse("is not a text");
    return json_.get<std::string>();
  }
  [[nodiscard]] bool yes() const {
    if (!json_.is_boolean()) refuse("is neither true nor false");
    return json_.get<bool>();
  }
  [[nodiscard]] double number() const {
    if (!json_.is_number()) refuse("is not a number");
    return json_.get<double>();
  }
  // The value with that name.
  [[nodiscard]] auto one_of(const auto& values) const {
    std::string names;
    for (const auto& [value, name] : values) {
      if (text() == name) return value;
      names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", name);
    }
    refuse("is none of " + names);
  }
  template <typename Read>
  [[nodiscard]] auto each(const Read& read) const {
    if (!json_.is_array()) refuse("is not an array");
    std::vector<decltype(read(*this))> result;
    for (std::size_t i = 0; i < json_.size(); ++i)
      result.push_back(read(Part(json_[i], fmt::format("{}[{}]", path_, i))));
    return result;
  }
  [[nodiscard]] Parameters numbers() const {
    if (!json_.is_object()) refuse("is not an object");
    Parameters result;
    for (const auto& [name, value] : json_.items()) result[name] = Part(value, path_ + "." + name).number();
    return result;
  }

 private:
  const Json& json_;
  std::string path_;
};

Settings settings_from(const Part& part) {
  return part.each([](const Part& each) { return std::pair(each["name"].text(), each["value"].text()); });
}

double number_from(const Part& part) {
  return part.number();
}

Figure figure_from(const Part& part) {
  return {.name = part["name"].text(),
          .unit = part["unit"].text(),
          .better = part["better"].one_of(betters),
          .repeats = part["repeats"].each(number_from)};
}

CdfPoint cdf_point_from(const Part& part) {
  const std::vector<double> numbers = part.each(number_from);
  if (numbers.size() != 2) part.refuse("is not a pair of microseconds and share");
  return {.microseconds = numbers[0], .share = numbers[1]};
}

Measurement measurement_from(const Part& part) {
  return {.scenario = part["scenario"].text(),
          .service = part["service"].text(),
          .who = part["who"].one_of(whos),
          .parameters = part["parameters"].numbers(),
          .figures = part["figures"].each(figure_from),
          .cdf = part["cdf"].each(cdf_point_from)};
}

ServiceInfo service_from(const Part& part) {
  return {.label = part["label"].text(),
          .backend = part["backend"].text(),
          .strategy = part["strategy"].text(),
          .url = part["url"].text(),
          .settings = settings_from(part["settings"]),
          .crash = part["crash"].text(),
          .failover = part["failover"].text()};
}

Problem problem_from(const Part& part) {
  return {.service = part["service"].text(), .scenario = part["scenario"].text(), .message = part["message"].text()};
}

}  // namespace

std::string to_json(const Report& report) {
  const Json json{{"schema", schema_version},
                  {"started", report.started},
                  {"seconds", report.seconds},
                  {"quick", report.quick},
                  {"complete", report.complete},
                  {"command", report.command},
                  {"environment", settings_json(report.environment)},
                  {"services", array_of(report.services, service_json)},
                  {"measurements", array_of(report.measurements, measurement_json)},
                  {"ratios", ratios_json(ratios_table(report))},
                  {"problems", array_of(report.problems, problem_json)}};
  // Texts of a service are not always UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Report from_json(std::string_view text) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& error) {
    throw std::runtime_error(std::string("the report is not JSON: ") + error.what());
  }
  const Part whole(json, "");
  const double schema = whole["schema"].number();
  if (schema != schema_version) {
    whole["schema"].refuse(fmt::format("is {}, but only {} is known here", schema, schema_version));
  }
  return {.started = whole["started"].text(),
          .seconds = whole["seconds"].number(),
          .quick = whole["quick"].yes(),
          .complete = whole["complete"].yes(),
          .command = whole["command"].text(),
          .environment = settings_from(whole["environment"]),
          .services = whole["services"].each(service_from),
          .measurements = whole["measurements"].each(measurement_from),
          .problems = whole["problems"].each(problem_from)};
}

}  // namespace dlock::bench
