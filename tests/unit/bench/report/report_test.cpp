// Figures, their texts, ratios, the JSON file, comparisons and the page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <regex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/report/figures.hpp"
#include "bench/report/report.hpp"
#include "bench/report/tables.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

std::string file_text(const std::string& path) {
  std::ifstream file(std::string(DLOCK_SOURCE_DIR) + "/" + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The file with a measurement of each kind, of four services.
const std::string golden_text = file_text("tests/unit/bench/report/golden.json");

Figure lower(const std::string& name, std::vector<double> repeats, const std::string& unit = "us") {
  return {.name = name, .unit = unit, .better = Better::lower, .repeats = std::move(repeats)};
}

Measurement measurement(const std::string& scenario, const std::string& service, Parameters parameters,
                        std::vector<Figure> figures, Who who = Who::dlock) {
  return {.scenario = scenario,
          .service = service,
          .who = who,
          .parameters = std::move(parameters),
          .figures = std::move(figures),
          .cdf = {}};
}

Measurement latency(const std::string& service, std::vector<double> p50, Who who = Who::dlock) {
  return measurement(scenario::latency, service, {}, {lower(figure::p50, std::move(p50))}, who);
}

Measurement throughput(const std::string& service, double callers, std::vector<double> pairs, Who who = Who::dlock) {
  Figure figure{figure::throughput, "1/s", Better::higher, std::move(pairs)};
  return measurement(scenario::throughput, service, {{parameter::callers, callers}}, {std::move(figure)}, who);
}

Measurement asynchronous(const std::string& service, double pairs, double processor_time) {
  Figure figure{figure::throughput, "1/s", Better::higher, {pairs}};
  return measurement(scenario::throughput, service, {{parameter::outstanding, 64}},
                     {std::move(figure), lower(figure::client_cpu, {processor_time})});
}

Measurement hand_off(const std::string& service, double waiters, double p50) {
  return measurement(scenario::contention, service, {{parameter::waiters, waiters}}, {lower(figure::p50, {p50})});
}

ServiceInfo service(const std::string& backend, const std::string& strategy) {
  return {.label = strategy.empty() ? backend : backend + " " + strategy,
          .backend = backend,
          .strategy = strategy,
          .url = backend + "://",
          .settings = {}};
}

Report report_with(std::vector<Measurement> measurements) {
  Report report;
  report.services = {service("redis", "queue"), service("file", ""), service("zookeeper", "sequential")};
  report.measurements = std::move(measurements);
  return report;
}

TEST(FigureTest, Numbers_HaveAMedianAndARange) {
  const Figure figure = lower("p50", {nan, 4, infinity, 2, nan});
  EXPECT_EQ(figure.median(), 3);
  EXPECT_EQ(figure.lowest(), 2);
  EXPECT_EQ(figure.highest(), 4);
  EXPECT_EQ(lower("p50", {}).median(), 0);
}

TEST(UnitsTest, Quantity_HasThreeDigitsAndTheUnitThatFits) {
  const struct {
    double value;
    const char* unit;
    const char* text;
  } rows[] = {
      {0.00002, "", "2e-05"},   {9.996, "", "10.0"},   {-12.34, "", "-12.3"},       {1234.5, "", "1234"},
      {999.7, "us", "1.00 ms"}, {2e6, "us", "2.00 s"}, {84'213, "1/s", "84.2 k/s"}, {1.4e6, "1/s", "1.40 M/s"},
      {1430, "B", "1.43 kB"},   {nan, "us", "-"},
  };
  for (const auto& [value, unit, text] : rows) EXPECT_EQ(quantity_text(value, unit), text);
  EXPECT_EQ(printable("a\x1b[2Jb\nc\x7f\xC2\x9B"), "a [2Jb c  ") << "no control characters for a terminal";
}

// "redis queue, latency: 1.20 <= 0.85!" of all columns of ratios.
std::vector<std::string> ratios_of(std::vector<Measurement> measurements) {
  std::vector<std::string> lines;
  const Table table = ratios_table(report_with(std::move(measurements)));
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    for (const Table::Row& row : table.rows) {
      const Cell& cell = row.cells[i];
      if (!cell.value) continue;
      lines.push_back(row.name + ", " + table.columns[i].name + ": " + cell.text + (cell.budget ? " " : "") +
                      cell.note + (cell.missed ? "!" : ""));
    }
  }
  return lines;
}

TEST(RatiosTest, ServiceWithAFloor_HasRatios) {
  const std::string redis = "redis queue";
  const auto hand = Who::by_hand;
  EXPECT_THAT(
      ratios_of({latency("file", {1}), latency(redis, {12}), latency(redis, {10}, hand), throughput(redis, 64, {300}),
                 throughput(redis, 64, {100}, hand), throughput("zookeeper sequential", 8, {10}),
                 throughput("zookeeper sequential", 8, {5}, hand)}),
      ElementsAre("redis queue, latency: 1.20 <= 0.85!", "zookeeper sequential, 8 callers: 2.00",
                  "redis queue, 64 callers: 3.00 >= 1.50"));
  EXPECT_THAT(ratios_of({asynchronous(redis, 150, 6), asynchronous("zookeeper sequential", 150, 6),
                         throughput(redis, 64, {200}), throughput(redis, 64, {100}, hand)}),
              ElementsAre("redis queue, 64 callers: 2.00 >= 1.50", "redis queue, 64 async.: 1.50 >= 1.80!",
                          "redis queue, 64 async., CPU: 6.00 µs <= 7.00 µs"));
  // The ratio of the medians would be 10 / 2. Repeats that only one of them has do not count.
  EXPECT_THAT(ratios_of({latency("file", {10, 2, 30, 1000}), latency("file", {2, 1, 10}, hand)}),
              ElementsAre("file, latency: 3.00"));
  EXPECT_THAT(
      ratios_of({latency("file", {2}), latency("file", {0}, hand), latency(redis, {}), latency(redis, {1}, hand)}),
      ElementsAre());
  EXPECT_THAT(ratios_of({latency(redis, {0.854}), latency(redis, {1}, hand)}),
              ElementsAre("redis queue, latency: 0.85 <= 0.85"))
      << "a budget is judged by the digits shown";
}

TEST(TextTest, Report_HasALineForEachService) {
  Report report = report_with(
      {measurement(scenario::latency, "redis queue", {}, {lower(figure::p50, {61.2}), lower(figure::p99, {1304})}),
       latency("redis queue", {40}, Who::by_hand), throughput("redis queue", 8, {84'213}),
       throughput("redis queue", 8, {80'000}, Who::by_hand), hand_off("redis queue", 2, 90),
       hand_off("redis queue", 256, 92), hand_off("file", 2, 38), throughput("file", 1, {500})});
  report.services.resize(2);
  report.problems = {{"zookeeper", "", "connection\nrefused"}, {"file", "recovery", "\x1b[2J"}};
  report.quick = true;
  report.complete = false;
  const std::string text = to_text(report);
  EXPECT_THAT(text, testing::StartsWith("             free lock  free lock  throughput   hand-off     hand-off\n"
                                        "service            p50        p99   8 callers  2 waiters  256 waiters\n"
                                        "redis queue    61.2 us    1.30 ms    84.2 k/s    90.0 us      92.0 us\n"
                                        "file                 -          -   500 /s @1    38.0 us   38.0 us @2\n"));
  EXPECT_THAT(text, HasSubstr("\n"
                              "ratio to by hand  latency   8 callers\n"
                              "redis queue          1.53!       1.05\n"
                              "  budget          <= 0.85     >= 1.00\n"
                              "! misses the performance budget\n"));
  EXPECT_THAT(text, HasSubstr("\nNot measured:\n"
                              "  zookeeper: connection refused\n"
                              "  file, recovery:  [2J\n"));
  for (const char* note : {"A quick run", "Interrupted"}) EXPECT_THAT(text, HasSubstr(note));
  EXPECT_EQ(to_text({}), "Nothing was measured.\n");
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

// Ratios are written and not read: they are computed from the figures.
TEST(JsonTest, ReportThatWasRead_IsWrittenAgainAsTheSchemaSays) {
  Json golden = Json::parse(golden_text);
  const Json schema = Json::parse(file_text("docs/bench-report.schema.json"));
  expect_described(golden, schema, schema, "");
  EXPECT_EQ(Json::parse(to_json(from_json(golden_text))), golden);
  golden["quick"] = true;
  golden["complete"] = false;
  EXPECT_EQ(Json::parse(to_json(from_json(golden.dump()))), golden);
  Report report = report_with({latency("file", {0.1, 1.0 / 3, 5e-324, 123456789012345680.0, nan})});
  report.problems = {{"file", "", "bad \xff byte"}};
  const Report read = from_json(to_json(report));
  EXPECT_EQ(read.measurements[0].figures[0].repeats, (std::vector<double>{0.1, 1.0 / 3, 5e-324, 123456789012345680.0}));
  EXPECT_EQ(read.problems[0].message, "bad \xEF\xBF\xBD byte");
}

TEST(JsonTest, TextThatIsNoReport_IsRefusedWithItsWrongPart) {
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      (void)from_json(text);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(error_of("{\"schema\": 2"), HasSubstr("the report is not JSON"));
  EXPECT_EQ(error_of("[]"), "the report: is not an object");
  EXPECT_EQ(error_of("{}"), "the report: \"schema\" is missing");
  const struct {
    const char* part;
    Json value;
    const char* error;
  } rows[] = {
      {"/schema", 1, "schema: is 1, but only 2 is known here"},
      {"/started", 1, "started: is not a text"},
      {"/quick", 0, "quick: is neither true nor false"},
      {"/environment/0/value", nullptr, "environment[0].value: is not a text"},
      {"/services/1", "redis", "services[1]: is not an object"},
      {"/measurements/1/parameters/callers", nullptr, "measurements[1].parameters.callers: is not a number"},
      {"/measurements/1/figures/0/repeats/2", nullptr, "measurements[1].figures[0].repeats[2]: is not a number"},
      {"/measurements/0/who", "me", "measurements[0].who: is none of \"dlock\", \"by hand\""},
      {"/measurements/0/cdf/3", Json::array({1, 2, 3}),
       "measurements[0].cdf[3]: is not a pair of microseconds and share"},
  };
  for (const auto& row : rows) {
    Json json = Json::parse(golden_text);
    json[Json::json_pointer(row.part)] = row.value;
    EXPECT_EQ(error_of(json.dump()), row.error);
  }
}

TEST(CompareTest, DistantRangesAndMedians_AreAChange) {
  const std::string redis = "redis queue";
  const char* const no_change = "Nothing changed beyond the noise.";
  const auto samples = [](double count) {
    return measurement("latency", "file", {}, {{"samples", "", Better::neither, {count}}});
  };
  const auto with_lease = [&](double taken, double lease) {
    return measurement("latency", redis, {}, {lower("p50", {taken}), {figure::lease, "us", Better::neither, {lease}}});
  };
  const struct {
    const char* name;
    Measurement before;
    Measurement after;
    bool slower;
    const char* text;
  } rows[] = {
      {"ranges overlap", latency(redis, {100, 110, 130}), latency(redis, {128, 180, 200}), false, no_change},
      {"five percent", latency(redis, {100, 100, 100}), latency(redis, {105, 105, 105}), false, no_change},
      {"slower", latency(redis, {100, 101, 102}), latency(redis, {150, 151, 152}), true,
       "   101 us ->    151 us   +50 %"},
      {"faster", latency(redis, {201}), latency(redis, {101}), false, "\nredis queue\n  better  latency, p50  "},
      {"from zero", latency(redis, {0, 0}), latency(redis, {5, 6}), true, "     0 us ->   5.50 us"},
      {"fewer pairs", throughput(redis, 64, {200, 201}), throughput(redis, 64, {100, 101}), true, "   -50 %"},
      {"neither good nor bad", samples(10), samples(1000), false, no_change},
      {"slower floor", latency("file", {10}, Who::by_hand), latency("file", {20}, Who::by_hand), false, "  worse  "},
      {"other parameters", throughput(redis, 8, {100}), throughput(redis, 64, {10}), false,
       "\nMeasured only before:\n  redis queue: throughput, 8 callers\n"
       "\nMeasured only after:\n  redis queue: throughput, 64 callers\n"},
      {"other lease", with_lease(100, 2e6), with_lease(300, 4e6), false,
       "warning: redis queue: latency is not compared, because the lease differs: 2.00 s -> 4.00 s\n"},
      {"same lease", with_lease(100, 2e6), with_lease(300, 2e6), true, "  worse  "},
      {"few repeats", latency(redis, {1, 2}), latency(redis, {1, 2}), false, "may move one figure in 3"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const Comparison comparison = compare(report_with({row.before}), report_with({row.after}));
    EXPECT_EQ(comparison.slower, row.slower);
    EXPECT_THAT(comparison.text, HasSubstr(row.text));
  }
}

TEST(CompareTest, OtherEnvironment_HasAWarning) {
  Report before = report_with({});
  Report after = report_with({});
  before.environment = {{"processor", "EPYC"}, {"kernel", "6.1"}};
  after.environment = {{"processor", "Xeon"}, {"kernel", "6.1"}, {"memory", "8 GiB"}};
  before.services[0].settings = {{"appendonly", "no"}};
  after.services[0].settings = {{"appendonly", "yes"}};
  after.quick = true;
  const std::string text = compare(before, after).text;
  for (const char* part : {"only one of them is a quick run", "processor: EPYC -> Xeon", "memory: unknown -> 8 GiB",
                           "redis queue: appendonly: no -> yes"}) {
    EXPECT_THAT(text, HasSubstr("warning: " + std::string(part) + "\n"));
  }
  EXPECT_THAT(text, Not(HasSubstr("kernel")));
}

std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const auto begin = text.find(from);
  if (begin == std::string::npos) return {};
  return text.substr(begin + from.size(), text.find(to, begin + from.size()) - begin - from.size());
}

Json embedded_json(const std::string& page) {
  return Json::parse(between(page, "<script type=\"application/json\" id=\"report\">", "</script>"));
}

TEST(HtmlTest, Page_HasEveryFigureInATableAndLoadsNothing) {
  const Report report = from_json(golden_text);
  std::string page = to_html(report);
  EXPECT_EQ(embedded_json(page), Json::parse(to_json(report)));
  const std::string text = std::regex_replace(between(page, "<main>", "<script"), std::regex("<[^>]*>"), "");
  for (const ServiceInfo& each : report.services) EXPECT_THAT(text, HasSubstr(each.url));
  for (const Measurement& each : report.measurements) {
    const std::string row = between(text, each.service + name_of(each), "\n");
    for (const Figure& figure : each.figures) {
      EXPECT_THAT(row, HasSubstr(quantity_text(figure.median(), figure.unit)))
          << each.service << ": " << name_of(each) << ", " << figure.name;
    }
  }
  EXPECT_THAT(page, HasSubstr("content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\""));
  const std::string name_of_svg = "http://www.w3.org/2000/svg";
  page.erase(page.find(name_of_svg), name_of_svg.size());
  for (const char* each : {"{{", "http:", "https:", "src=", "url(", "@import", "fetch(", "<link", "innerHTML"}) {
    EXPECT_THAT(page, Not(HasSubstr(each)));
  }
}

// Each text of a report is markup, or would end the script.
TEST(HtmlTest, MarkupInTheData_IsEscaped) {
  const std::string evil = "</script></title><!--<script>alert('\"&{{json}}')</script><b onclick=\"x\">";
  Report report = from_json(golden_text);
  report.started = report.command = evil;
  report.environment = {{evil, evil}, {"processor", evil}};
  report.problems = {{evil, evil, evil}};
  for (ServiceInfo& each : report.services) {
    each.url = each.backend = each.strategy = each.crash = each.failover = evil;
    each.settings = {{evil, evil}};
    for (Measurement& measured : report.measurements) {
      if (measured.service == each.label) measured.service = evil + each.label;
    }
    each.label = evil + each.label;
  }
  report.measurements.push_back(
      measurement(scenario::latency, evil, {{"rate", 1}, {evil, 2}}, {lower(evil, {1, 2}, evil)}));
  const std::string page = to_html(report);
  const auto count = [&page](const std::string& text) {
    std::size_t found = 0;
    for (auto at = page.find(text); at != std::string::npos; at = page.find(text, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("<script"), 2U);
  EXPECT_EQ(count("</script>"), 2U);
  EXPECT_GE(count("&lt;script&gt;"), 30U);
  for (const char* each : {"<!--", "<b onclick"}) EXPECT_THAT(page, Not(HasSubstr(each)));
  EXPECT_THAT(page.substr(0, page.find("<script")), Not(HasSubstr("alert('\""))) << "ends an attribute";
  EXPECT_EQ(embedded_json(page), Json::parse(to_json(report)));
}

}  // namespace
}  // namespace dlock::bench
