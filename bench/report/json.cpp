#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "bench/report/report.hpp"

namespace dlock::bench {

namespace {

using Json = nlohmann::ordered_json;

// Counts up when a reader of the old form would misunderstand the new one.
constexpr int schema_version = 1;

const char* to_string(Better better) {
  switch (better) {
    case Better::lower:
      return "lower";
    case Better::higher:
      return "higher";
    case Better::neither:
      break;
  }
  return "neither";
}

Json settings_json(const Settings& settings) {
  Json result = Json::array();
  for (const auto& [name, value] : settings) result.push_back({{"name", name}, {"value", value}});
  return result;
}

Json service_json(const ServiceInfo& service) {
  return {{"label", service.label},
          {"backend", service.backend},
          {"strategy", service.strategy},
          {"url", service.url},
          {"settings", settings_json(service.settings)}};
}

Json measurement_json(const Measurement& measurement) {
  Json parameters = Json::object();
  for (const auto& [name, value] : measurement.parameters) parameters[name] = value;
  Json figures = Json::array();
  for (const Figure& figure : measurement.figures) {
    Json repeats = Json::array();
    for (const double each : figure.repeats) {
      if (std::isfinite(each)) repeats.push_back(each);  // JSON has no other numbers
    }
    figures.push_back(
        {{"name", figure.name}, {"unit", figure.unit}, {"better", to_string(figure.better)}, {"repeats", repeats}});
  }
  Json cdf = Json::array();
  for (const CdfPoint& each : measurement.cdf) {
    cdf.push_back(Json::array({each.microseconds, each.share}));
  }
  return {{"scenario", measurement.scenario},
          {"service", measurement.service},
          {"who", to_string(measurement.who)},
          {"parameters", parameters},
          {"figures", figures},
          {"cdf", cdf}};
}

// A part of the file that knows where it is, so that errors can say so.
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

  template <typename Read>
  void each(const Read& read) const {
    if (!json_.is_array()) refuse("is not an array");
    for (std::size_t i = 0; i < json_.size(); ++i) read(Part(json_[i], fmt::format("{}[{}]", path_, i)));
  }
  template <typename Read>
  void each_member(const Read& read) const {
    if (!json_.is_object()) refuse("is not an object");
    for (const auto& [name, value] : json_.items()) read(name, Part(value, path_ + "." + name));
  }

 private:
  const Json& json_;
  std::string path_;
};

Settings settings_from(const Part& part) {
  Settings settings;
  part.each([&](const Part& each) { settings.emplace_back(each["name"].text(), each["value"].text()); });
  return settings;
}

Better better_from(const Part& part) {
  const std::string text = part.text();
  for (const Better each : {Better::lower, Better::higher, Better::neither}) {
    if (text == to_string(each)) return each;
  }
  part.refuse(R"(is none of "lower", "higher" and "neither")");
}

Who who_from(const Part& part) {
  const std::string text = part.text();
  for (const Who each : {Who::dlock, Who::same_requests, Who::by_hand}) {
    if (text == to_string(each)) return each;
  }
  if (text == "floor") return Who::same_requests;  // the only floor of older files
  part.refuse(R"(is none of "dlock", "same requests" and "by hand")");
}

Figure figure_from(const Part& part) {
  Figure figure{
      .name = part["name"].text(), .unit = part["unit"].text(), .better = better_from(part["better"]), .repeats = {}};
  part["repeats"].each([&](const Part& each) { figure.repeats.push_back(each.number()); });
  return figure;
}

CdfPoint cdf_point_from(const Part& part) {
  std::vector<double> numbers;
  part.each([&](const Part& each) { numbers.push_back(each.number()); });
  if (numbers.size() != 2) part.refuse("is not a pair of microseconds and share");
  return {.microseconds = numbers[0], .share = numbers[1]};
}

Measurement measurement_from(const Part& part) {
  Measurement measurement{.scenario = part["scenario"].text(),
                          .service = part["service"].text(),
                          .who = who_from(part["who"]),
                          .parameters = {},
                          .figures = {},
                          .cdf = {}};
  part["parameters"].each_member(
      [&](const std::string& name, const Part& each) { measurement.parameters[name] = each.number(); });
  part["figures"].each([&](const Part& each) { measurement.figures.push_back(figure_from(each)); });
  part["cdf"].each([&](const Part& each) { measurement.cdf.push_back(cdf_point_from(each)); });
  return measurement;
}

void check_schema(const Part& part) {
  const double schema = part["schema"].number();
  if (schema != schema_version) {
    part["schema"].refuse(fmt::format("is {}, but only {} is known here", schema, schema_version));
  }
}

}  // namespace

std::string to_json(const Report& report) {
  Json json{{"schema", schema_version},
            {"started", report.started},
            {"seconds", report.seconds},
            {"quick", report.quick},
            {"complete", report.complete},
            {"command", report.command},
            {"environment", settings_json(report.environment)},
            {"services", Json::array()},
            {"measurements", Json::array()},
            {"problems", Json::array()}};
  for (const ServiceInfo& each : report.services) json["services"].push_back(service_json(each));
  for (const Measurement& each : report.measurements) json["measurements"].push_back(measurement_json(each));
  for (const Problem& each : report.problems) {
    json["problems"].push_back({{"service", each.service}, {"scenario", each.scenario}, {"message", each.message}});
  }
  // What a service says need not be UTF-8.
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
  check_schema(whole);
  Report report{.started = whole["started"].text(),
                .seconds = whole["seconds"].number(),
                .quick = whole["quick"].yes(),
                .complete = whole["complete"].yes(),
                .command = whole["command"].text(),
                .environment = settings_from(whole["environment"]),
                .services = {},
                .measurements = {},
                .problems = {}};
  whole["services"].each([&](const Part& each) {
    report.services.push_back({.label = each["label"].text(),
                               .backend = each["backend"].text(),
                               .strategy = each["strategy"].text(),
                               .url = each["url"].text(),
                               .settings = settings_from(each["settings"])});
  });
  whole["measurements"].each([&](const Part& each) { report.measurements.push_back(measurement_from(each)); });
  whole["problems"].each([&](const Part& each) {
    report.problems.push_back(
        {.service = each["service"].text(), .scenario = each["scenario"].text(), .message = each["message"].text()});
  });
  return report;
}

}  // namespace dlock::bench
