#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

#include "bench/report/report.hpp"
#include "tests/unit/bench/report/sample.hpp"
#include "tests/unit/bench/report/schema_check.hpp"
#include "tests/unit/bench/report/synthetic_report.hpp"

namespace dlock::bench {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

Json schema() {
  std::ifstream file(std::string(DLOCK_SOURCE_DIR) + "/docs/bench-report.schema.json");
  return Json::parse(file);
}

std::string error_of(const std::string& text) {
  try {
    (void)from_json(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

// A part of each kind.
Report small_report() {
  Report report = synthetic_report();
  report.measurements.erase(report.measurements.begin() + 3, report.measurements.end());
  return report;
}

// The error for a good report in which that part has been replaced.
std::string error_with(const std::string& pointer, const Json& value) {
  Json json = Json::parse(to_json(small_report()));
  json[Json::json_pointer(pointer)] = value;
  return error_of(json.dump());
}

std::string error_without(const std::string& object, const std::string& name) {
  Json json = Json::parse(to_json(small_report()));
  json[Json::json_pointer(object)].erase(name);
  return error_of(json.dump());
}

void expect_same(const Figure& a, const Figure& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.unit, b.unit);
  EXPECT_EQ(a.better, b.better);
  EXPECT_EQ(a.repeats, b.repeats);
}

void expect_same(const Measurement& a, const Measurement& b) {
  EXPECT_EQ(a.scenario, b.scenario);
  EXPECT_EQ(a.service, b.service);
  EXPECT_EQ(a.who, b.who);
  EXPECT_EQ(a.parameters, b.parameters);
  ASSERT_EQ(a.figures.size(), b.figures.size());
  for (std::size_t i = 0; i < a.figures.size(); ++i) expect_same(a.figures[i], b.figures[i]);
  ASSERT_EQ(a.cdf.size(), b.cdf.size());
  for (std::size_t i = 0; i < a.cdf.size(); ++i) {
    EXPECT_EQ(a.cdf[i].microseconds, b.cdf[i].microseconds);
    EXPECT_EQ(a.cdf[i].share, b.cdf[i].share);
  }
}

void expect_same(const ServiceInfo& a, const ServiceInfo& b) {
  EXPECT_EQ(a.label, b.label);
  EXPECT_EQ(a.backend, b.backend);
  EXPECT_EQ(a.strategy, b.strategy);
  EXPECT_EQ(a.url, b.url);
  EXPECT_EQ(a.settings, b.settings);
}

TEST(Json, ReadsWhatItWrote) {
  Report report = synthetic_report();
  report.quick = true;
  report.complete = false;
  const Report read = from_json(to_json(report));
  EXPECT_EQ(read.started, report.started);
  EXPECT_EQ(read.seconds, report.seconds);
  EXPECT_TRUE(read.quick);
  EXPECT_FALSE(read.complete);
  EXPECT_EQ(read.command, report.command);
  EXPECT_EQ(read.environment, report.environment);
  ASSERT_EQ(read.services.size(), report.services.size());
  for (std::size_t i = 0; i < read.services.size(); ++i) expect_same(read.services[i], report.services[i]);
  ASSERT_EQ(read.measurements.size(), report.measurements.size());
  for (std::size_t i = 0; i < read.measurements.size(); ++i) expect_same(read.measurements[i], report.measurements[i]);
  ASSERT_EQ(read.problems.size(), report.problems.size());
  for (std::size_t i = 0; i < read.problems.size(); ++i) {
    EXPECT_EQ(read.problems[i].service, report.problems[i].service);
    EXPECT_EQ(read.problems[i].scenario, report.problems[i].scenario);
    EXPECT_EQ(read.problems[i].message, report.problems[i].message);
  }
}

TEST(Json, KeepsNumbersToTheLastBit) {
  Report report;
  report.measurements = {latency("file", {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 123456789012345680.0})};
  EXPECT_EQ(from_json(to_json(report)).measurements[0].figures[0].repeats, report.measurements[0].figures[0].repeats);
}

TEST(Json, LeavesOutRepeatsThatAreNoNumbers) {
  Report report;
  report.measurements = {latency("file", {1, std::numeric_limits<double>::quiet_NaN(), 2})};
  EXPECT_EQ(from_json(to_json(report)).measurements[0].figures[0].repeats, (std::vector<double>{1, 2}));
}

TEST(Json, TextThatIsNotUtf8DoesNotPreventAReport) {
  Report report;
  report.problems = {{"file", "", "bad \xff byte"}};
  EXPECT_EQ(from_json(to_json(report)).problems[0].message, "bad \xEF\xBF\xBD byte");
}

TEST(Json, TheFloorOfOlderFilesSentTheSameRequests) {
  Report report;
  report.measurements = {latency("file", {1}, Who::by_hand)};
  Json json = Json::parse(to_json(report));
  json.at("measurements").at(0).at("who") = "floor";
  EXPECT_EQ(schema_violation(json, schema()), "");
  EXPECT_EQ(from_json(json.dump()).measurements[0].who, Who::same_requests);
}

TEST(Json, AnEmptyReportIsOne) {
  EXPECT_TRUE(from_json(to_json({})).measurements.empty());
}

TEST(Json, MatchesItsSchema) {
  EXPECT_EQ(schema_violation(Json::parse(to_json(synthetic_report())), schema()), "");
  EXPECT_EQ(schema_violation(Json::parse(to_json({})), schema()), "");
}

TEST(Json, TheSchemaRefusesWhatIsWrong) {
  const Json good = Json::parse(to_json(small_report()));
  const auto violation = [&](const char* pointer, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = value;
    return schema_violation(bad, schema());
  };
  EXPECT_EQ(violation("/schema", 2), "/schema is not 1");
  EXPECT_EQ(violation("/more", 2), " has an unknown \"more\"");
  EXPECT_EQ(violation("/quick", "no"), "/quick is no \"boolean\"");
  EXPECT_EQ(violation("/measurements/0/who", "me"),
            "/measurements/0/who is none of "
            "[\"dlock\",\"same requests\",\"by hand\",\"floor\"]");
  EXPECT_EQ(violation("/measurements/0/parameters/callers", "8"),
            "/measurements/0/parameters/callers is no \"number\"");
  EXPECT_EQ(violation("/measurements/0/cdf/0", Json::array({1})), "/measurements/0/cdf/0 is too short");
  EXPECT_EQ(violation("/measurements/0/figures/0", Json::object()), "/measurements/0/figures/0 has no \"name\"");
}

TEST(Json, SaysWhatIsNoJson) {
  EXPECT_THAT(error_of(""), HasSubstr("the report is not JSON"));
  EXPECT_THAT(error_of("{\"schema\": 1"), HasSubstr("the report is not JSON"));
  EXPECT_THAT(error_of("{\"schema\": 1e999}"), HasSubstr("the report is not JSON"));
}

TEST(Json, SaysWhatIsNoReport) {
  EXPECT_EQ(error_of("[]"), "the report: is not an object");
  EXPECT_EQ(error_of("{}"), "the report: \"schema\" is missing");
}

TEST(Json, RefusesAnotherSchema) {
  EXPECT_EQ(error_with("/schema", 2), "schema: is 2, but only 1 is known here");
  EXPECT_EQ(error_with("/schema", "1"), "schema: is not a number");
}

TEST(Json, NamesThePartThatIsMissing) {
  for (const char* each :
       {"started", "seconds", "quick", "complete", "command", "environment", "services", "measurements", "problems"}) {
    EXPECT_EQ(error_without("", each), "the report: \"" + std::string(each) + "\" is missing");
  }
  EXPECT_EQ(error_without("/measurements/2", "who"), "measurements[2]: \"who\" is missing");
  EXPECT_EQ(error_without("/measurements/2/figures/1", "unit"), "measurements[2].figures[1]: \"unit\" is missing");
}

TEST(Json, NamesThePartOfTheWrongType) {
  EXPECT_EQ(error_with("/started", 1), "started: is not a text");
  EXPECT_EQ(error_with("/seconds", "1"), "seconds: is not a number");
  EXPECT_EQ(error_with("/quick", 0), "quick: is neither true nor false");
  EXPECT_EQ(error_with("/environment", Json::object()), "environment: is not an array");
  EXPECT_EQ(error_with("/environment/0/value", nullptr), "environment[0].value: is not a text");
  EXPECT_EQ(error_with("/services/1", "redis"), "services[1]: is not an object");
  EXPECT_EQ(error_with("/measurements/1/parameters", Json::array()), "measurements[1].parameters: is not an object");
  EXPECT_EQ(error_with("/measurements/1/parameters/callers", nullptr),
            "measurements[1].parameters.callers: is not a number");
  EXPECT_EQ(error_with("/measurements/1/figures/0/repeats/2", nullptr),
            "measurements[1].figures[0].repeats[2]: is not a number");
}

TEST(Json, NamesThePartWithTheWrongWord) {
  EXPECT_EQ(error_with("/measurements/0/who", "me"),
            "measurements[0].who: is none of \"dlock\", \"same requests\" and \"by hand\"");
  EXPECT_EQ(error_with("/measurements/0/figures/0/better", "faster"),
            "measurements[0].figures[0].better: is none of \"lower\", \"higher\" and \"neither\"");
  EXPECT_EQ(error_with("/measurements/0/cdf/3", Json::array({1, 2, 3})),
            "measurements[0].cdf[3]: is not a pair of microseconds and share");
}

}  // namespace
}  // namespace dlock::bench
