#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/report/report.hpp"
#include "bench/report/tables.hpp"

namespace dlock::bench {

namespace {

using Json = nlohmann::ordered_json;

// Increased when a reader of the old form would misunderstand the new one.
constexpr int schema_version = 2;

constexpr std::array better_words = {"lower", "higher", "neither"};
constexpr std::array who_words = {"dlock", "by hand"};

// The members of each part of the file. Visitors write them, or read them.
template <typename T, typename Part>
concept Some = std::same_as<std::remove_const_t<T>, Part>;

void members(const auto& visit, Some<Settings::value_type> auto& setting) {
  visit("name", setting.first);
  visit("value", setting.second);
}
void members(const auto& visit, Some<ServiceInfo> auto& service) {
  visit("label", service.label);
  visit("backend", service.backend);
  visit("strategy", service.strategy);
  visit("url", service.url);
  visit("settings", service.settings);
  visit("crash", service.crash);
  visit("failover", service.failover);
}
void members(const auto& visit, Some<Figure> auto& figure) {
  visit("name", figure.name);
  visit("unit", figure.unit);
  visit("better", figure.better);
  visit("repeats", figure.repeats);
}
void members(const auto& visit, Some<Measurement> auto& measurement) {
  visit("scenario", measurement.scenario);
  visit("service", measurement.service);
  visit("who", measurement.who);
  visit("parameters", measurement.parameters);
  visit("figures", measurement.figures);
  visit("cdf", measurement.cdf);
}
void members(const auto& visit, Some<Problem> auto& problem) {
  visit("service", problem.service);
  visit("scenario", problem.scenario);
  visit("message", problem.message);
}
void members(const auto& visit, Some<Report> auto& report) {
  visit("started", report.started);
  visit("seconds", report.seconds);
  visit("quick", report.quick);
  visit("complete", report.complete);
  visit("command", report.command);
  visit("environment", report.environment);
  visit("services", report.services);
  visit("measurements", report.measurements);
  visit("problems", report.problems);
}

template <typename T>
constexpr bool is_vector = false;
template <typename T>
constexpr bool is_vector<std::vector<T>> = true;

template <typename T>
Json written(const T& value) {
  if constexpr (std::is_same_v<T, Better>) {
    return better_words.at(static_cast<std::size_t>(value));
  } else if constexpr (std::is_same_v<T, Who>) {
    return who_words.at(static_cast<std::size_t>(value));
  } else if constexpr (std::is_same_v<T, CdfPoint>) {
    return Json::array({value.microseconds, value.share});
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    std::vector<double> finite = value;  // JSON has no infinite numbers
    std::erase_if(finite, [](double each) { return !std::isfinite(each); });
    return finite;
  } else if constexpr (is_vector<T>) {
    Json array = Json::array();
    for (const auto& each : value) array.push_back(written(each));
    return array;
  } else if constexpr (std::is_class_v<T> && !std::is_same_v<T, std::string> && !std::is_same_v<T, Parameters>) {
    Json object = Json::object();
    members([&](const char* name, const auto& member) { object[name] = written(member); }, value);
    return object;
  } else {
    return value;
  }
}

// A part of the file, with its path for errors.
class Part {
 public:
  Part(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  [[noreturn]] void refuse(const std::string& why) const {
    throw std::runtime_error((path_.empty() ? std::string("the report") : path_) + ": " + why);
  }
  void expect(bool (Json::*is)() const noexcept, const char* complaint) const {
    if (!(json_.*is)()) refuse(complaint);
  }

  [[nodiscard]] Part operator[](const char* name) const {
    expect(&Json::is_object, "is not an object");
    const auto found = json_.find(name);
    if (found == json_.end()) refuse(fmt::format("\"{}\" is missing", name));
    return {*found, path_.empty() ? name : path_ + "." + name};
  }

  void read(std::string& value) const {
    expect(&Json::is_string, "is not a text");
    value = json_.get<std::string>();
  }
  void read(bool& value) const {
    expect(&Json::is_boolean, "is neither true nor false");
    value = json_.get<bool>();
  }
  void read(double& value) const {
    expect(&Json::is_number, "is not a number");
    value = json_.get<double>();
  }
  void read(Better& value) const { value = static_cast<Better>(place_in(better_words)); }
  void read(Who& value) const { value = static_cast<Who>(place_in(who_words)); }
  void read(Parameters& value) const {
    expect(&Json::is_object, "is not an object");
    for (const auto& [name, number] : json_.items()) Part(number, path_ + "." + name).read(value[name]);
  }
  void read(CdfPoint& value) const {
    std::vector<double> numbers;
    read(numbers);
    if (numbers.size() != 2) refuse("is not a pair of microseconds and share");
    value = {.microseconds = numbers[0], .share = numbers[1]};
  }
  template <typename T>
  void read(std::vector<T>& value) const {
    expect(&Json::is_array, "is not an array");
    for (std::size_t i = 0; i < json_.size(); ++i) {
      Part(json_[i], fmt::format("{}[{}]", path_, i)).read(value.emplace_back());
    }
  }
  void read(auto& value) const {
    members([this](const char* name, auto& member) { (*this)[name].read(member); }, value);
  }

 private:
  [[nodiscard]] std::size_t place_in(const auto& words) const {
    std::string word;
    read(word);
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (word == words[i]) return i;
    }
    refuse(fmt::format("is none of \"{}\"", fmt::join(words, "\", \"")));
  }

  const Json& json_;
  std::string path_;
};

Json ratios_json(const Table& table) {
  Json result = Json::array();
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const Table::Column& column = table.columns[i];
    for (const Table::Row& row : table.rows) {
      const Cell& cell = row.cells[i];
      if (!cell.value) continue;
      Json json{{"service", row.name}, {"column", column.name}, {cell.unit.empty() ? "ratio" : "value", *cell.value}};
      if (!cell.unit.empty()) json["unit"] = cell.unit;
      if (cell.budget) json["budget"] = Json{{column.better == Better::lower ? "at most" : "at least", *cell.budget}};
      json["missed"] = cell.missed;
      result.push_back(std::move(json));
    }
  }
  return result;
}

}  // namespace

std::string to_json(const Report& report) {
  Json json{{"schema", schema_version}};
  json.update(written(report));
  json["ratios"] = ratios_json(ratios_table(report));
  // A service's texts may not be UTF-8.
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
  double schema = 0;
  whole["schema"].read(schema);
  if (schema != schema_version) {
    whole["schema"].refuse(fmt::format("is {}, but only {} is known here", schema, schema_version));
  }
  Report report;
  whole.read(report);
  return report;
}

}  // namespace dlock::bench
