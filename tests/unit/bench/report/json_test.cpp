#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

#include "bench/report/report.hpp"
#include "tests/unit/bench/report/sample.hpp"

namespace dlock::bench {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

std::string error_of(const std::string& text) {
  try {
    (void)from_json(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

// A good report in which that part has been replaced, or removed.
std::string with(const std::string& pointer, const Json& value) {
  Json json = Json::parse(golden_text());
  json[Json::json_pointer(pointer)] = value;
  return json.dump();
}
std::string without(const std::string& object, const std::string& name) {
  Json json = Json::parse(golden_text());
  json[Json::json_pointer(object)].erase(name);
  return json.dump();
}

// Ratios are written and not read: they are computed from the figures.
TEST(JsonTest, ReportThatWasRead_IsWrittenAgain) {
  EXPECT_EQ(Json::parse(to_json(golden_report())), Json::parse(golden_text()));
  Json other = Json::parse(golden_text());
  other["quick"] = true;
  other["complete"] = false;
  EXPECT_EQ(Json::parse(to_json(from_json(other.dump()))), other);
}

TEST(JsonTest, NumbersAndTexts_AreKeptAsFarAsTheyCanBeRead) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Report report;
  report.measurements = {latency("file", {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 123456789012345680.0}),
                         latency("etcd", {1, nan, 2})};
  report.problems = {{"file", "", "bad \xff byte"}};
  const Report read = from_json(to_json(report));
  EXPECT_EQ(read.measurements[0].figures[0].repeats, report.measurements[0].figures[0].repeats);
  EXPECT_EQ(read.measurements[1].figures[0].repeats, (std::vector<double>{1, 2}));
  EXPECT_EQ(read.problems[0].message, "bad \xEF\xBF\xBD byte");
  EXPECT_TRUE(from_json(to_json({})).measurements.empty());
}

// Of the schema, what a change of the form breaks: names of members, and types.
void expect_described(const Json& value, Json schema, const Json& root, const std::string& path) {
  if (schema.contains("$ref")) schema = root.at(Json::json_pointer(schema.at("$ref").get<std::string>().substr(1)));
  if (value.is_object()) {
    for (const Json& each : schema.value("required", Json::array())) EXPECT_TRUE(value.contains(each)) << path << each;
    for (const auto& [name, member] : value.items()) {
      const Json others = schema.at("additionalProperties");
      ASSERT_TRUE(schema.value("properties", Json::object()).contains(name) || others.is_object()) << path << name;
      expect_described(member, schema.contains("properties") ? schema["properties"].value(name, others) : others, root,
                       path + name + ".");
    }
  } else if (value.is_array()) {
    EXPECT_EQ(schema.at("type"), "array") << path;
    for (const Json& each : value) expect_described(each, schema.at("items"), root, path);
  } else if (schema.contains("enum")) {
    EXPECT_NE(std::find(schema["enum"].begin(), schema["enum"].end(), value), schema["enum"].end()) << path << value;
  } else if (schema.contains("const")) {
    EXPECT_EQ(value, schema["const"]);
  } else {
    EXPECT_EQ(value.is_number() ? "number" : value.type_name(), schema.at("type")) << path;
  }
}

TEST(JsonTest, Schema_DescribesTheReport) {
  const Json schema = Json::parse(file_text("docs/bench-report.schema.json"));
  expect_described(Json::parse(golden_text()), schema, schema, "");
}

TEST(JsonTest, TextThatIsNoReport_IsRefusedWithItsWrongPart) {
  for (const char* text : {"", "{\"schema\": 2", "{\"schema\": 1e999}"}) {
    EXPECT_THAT(error_of(text), HasSubstr("the report is not JSON"));
  }
  for (const std::string name :
       {"started", "seconds", "quick", "complete", "command", "environment", "services", "measurements", "problems"}) {
    EXPECT_EQ(error_of(without("", name)), "the report: \"" + name + "\" is missing");
  }
  const std::string measured = "/measurements/1/";
  for (const auto& [text, error] : std::vector<std::pair<std::string, std::string>>{
           {"[]", "the report: is not an object"},
           {"{}", "the report: \"schema\" is missing"},
           {without("/measurements/2", "who"), "measurements[2]: \"who\" is missing"},
           {without("/measurements/2/figures/1", "unit"), "measurements[2].figures[1]: \"unit\" is missing"},
           {with("/schema", 1), "schema: is 1, but only 2 is known here"},
           {with("/schema", "2"), "schema: is not a number"},
           {with("/started", 1), "started: is not a text"},
           {with("/seconds", "1"), "seconds: is not a number"},
           {with("/quick", 0), "quick: is neither true nor false"},
           {with("/environment", Json::object()), "environment: is not an array"},
           {with("/environment/0/value", nullptr), "environment[0].value: is not a text"},
           {with("/services/1", "redis"), "services[1]: is not an object"},
           {with(measured + "parameters", Json::array()), "measurements[1].parameters: is not an object"},
           {with(measured + "parameters/callers", nullptr), "measurements[1].parameters.callers: is not a number"},
           {with(measured + "figures/0/repeats/2", nullptr), "measurements[1].figures[0].repeats[2]: is not a number"},
           {with("/measurements/0/who", "me"), "measurements[0].who: is none of \"dlock\", \"by hand\""},
           {with("/measurements/0/figures/0/better", "faster"),
            "measurements[0].figures[0].better: is none of \"lower\", \"higher\", \"neither\""},
           {with("/measurements/0/cdf/3", Json::array({1, 2, 3})),
            "measurements[0].cdf[3]: is not a pair of microseconds and share"},
       }) {
    EXPECT_EQ(error_of(text), error);
  }
}

}  // namespace
}  // namespace dlock::bench
