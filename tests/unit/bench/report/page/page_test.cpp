#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "bench/report/report.hpp"
#include "tests/unit/bench/report/page/xml_check.hpp"
#include "tests/unit/bench/report/sample.hpp"
#include "tests/unit/bench/report/synthetic_report.hpp"

namespace dlock::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Part {
  const char* scenario;
  const char* id;
};

constexpr Part parts[] = {{scenario::latency, "latency"},     {scenario::throughput, "throughput"},
                          {scenario::contention, "hand-off"}, {scenario::contention, "herd"},
                          {scenario::recovery, "recovery"},   {scenario::holding, "holding"},
                          {scenario::distance, "distance"},   {scenario::mix, "mix"},
                          {scenario::sharing, "sharing"}};

// From the heading with that id to the end of its section.
std::string section_of(const std::string& page, const std::string& id) {
  const auto from = page.find("<h2 id=\"" + id + "\">");
  if (from == std::string::npos) return {};
  return page.substr(from, page.find("</section>", from) - from);
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++found;
  return found;
}

std::string only_scenario(const char* wanted) {
  Report report = synthetic_report();
  std::erase_if(report.measurements, [&](const Measurement& each) { return each.scenario != wanted; });
  return to_html(report);
}

TEST(Page, IsWellFormed) {
  EXPECT_EQ(check_xml(to_html(synthetic_report())).error, "");
  EXPECT_EQ(check_xml(to_html({})).error, "");
  for (const Part& each : parts) EXPECT_EQ(check_xml(only_scenario(each.scenario)).error, "") << each.scenario;
}

TEST(Page, NeedsNothingFromElsewhere) {
  const std::string page = to_html(synthetic_report());
  const XmlCheck checked = check_xml(page);
  for (const XmlElement& element : checked.elements) {
    EXPECT_NE(element.name, "script");
    EXPECT_NE(element.name, "link");
    EXPECT_NE(element.name, "img");
    for (const auto& [name, value] : element.attributes) {
      EXPECT_NE(name, "src");
      EXPECT_TRUE(name != "href" || value.starts_with("#")) << value;
    }
  }
  EXPECT_THAT(page, Not(HasSubstr("http:")));
  EXPECT_THAT(page, Not(HasSubstr("https:")));
  EXPECT_THAT(page, Not(HasSubstr("url(")));
  EXPECT_THAT(page, Not(HasSubstr("@import")));
}

TEST(Page, HasAChartASentenceAndACommandForEachScenario) {
  for (const Part& each : parts) {
    const std::string section = section_of(only_scenario(each.scenario), each.id);
    EXPECT_GE(count(section, "<svg viewBox"), 1U) << each.id;
    EXPECT_GE(count(section, "<table"), 1U) << each.id;
    EXPECT_THAT(section, HasSubstr("To measure it again")) << each.id;
    EXPECT_THAT(section, HasSubstr("<span>--scenario</span> <span>" + std::string(each.scenario) + "</span></code>"))
        << each.id;
    EXPECT_THAT(section, Not(HasSubstr("Not measured"))) << each.id;
  }
}

TEST(Page, HasASentenceInPlaceOfAChartWithoutData) {
  for (const Part& each : parts) {
    const std::string section = section_of(to_html(without_scenario(synthetic_report(), each.scenario)), each.id);
    EXPECT_EQ(count(section, "<svg"), 0U) << each.id;
    EXPECT_THAT(section, HasSubstr("Not measured in this run.")) << each.id;
    EXPECT_THAT(section, HasSubstr("<span>--scenario</span> <span>" + std::string(each.scenario) + "</span></code>"))
        << each.id;
  }
}

TEST(Page, HasAPictureForEachBackend) {
  const std::string page = to_html(synthetic_report());
  // One of all services, and the distributions.
  EXPECT_EQ(count(section_of(page, "latency"), "role=\"img\""), 1U + 5U);
  EXPECT_EQ(count(section_of(page, "throughput"), "role=\"img\""), 5U);
  EXPECT_EQ(count(section_of(page, "hand-off"), "role=\"img\""), 5U);
  EXPECT_EQ(count(section_of(page, "herd"), "role=\"img\""), 4U);  // nobody counts for "file"
  EXPECT_EQ(count(section_of(page, "distance"), "role=\"img\""), 2U * 3U);
  // One of all services for each number of callers and share of reads, for the permits, and for the writer's wait.
  EXPECT_EQ(count(section_of(page, "sharing"), "role=\"img\""), 4U + 1U + 1U);
}

TEST(Page, DistanceBeginsWithWhatWasMeasuredWithoutIt) {
  Report report;
  report.services = {service("redis", "queue")};
  report.measurements = {
      latency("redis queue", {60}),
      measurement(scenario::distance, "redis queue", {{parameter::round_trip_ms, 5}}, {lower(figure::p50, {10'060})})};
  const std::string section = section_of(to_html(report), "distance");
  EXPECT_THAT(section, HasSubstr("queue: 60.0 us at 0, 10.1 ms at 5."));
  EXPECT_THAT(section, HasSubstr("<span>2.0</span>"));  // round trips
}

TEST(Page, HasAColumnForEachKindOfSharing) {
  Report report;
  report.services = {service("redis", "queue"), service("redis", "broadcast"), service("file", "")};
  report.measurements = {sharing("redis queue", 95, 8, {84'213}), writers_wait("redis queue", {61.2}, {1304}),
                         sharing("file", 95, 8, {500}), permits("file", 4, 64, {700})};
  const std::string section = section_of(to_html(report), "sharing");
  EXPECT_THAT(section, HasSubstr("95 % reads, 8 callers</h3>"));
  EXPECT_THAT(section, HasSubstr("wait of a writer, 8 readers: p50 / p99</h3>"));
  EXPECT_THAT(section, HasSubstr("redis queue: p50 61.2 us, p99 1.30 ms. "));
  EXPECT_THAT(section, HasSubstr(">4 permits, 64 callers</th>"));
  EXPECT_THAT(section, HasSubstr("<span>700 /s</span>"));
  EXPECT_THAT(section, Not(HasSubstr("broadcast"))) << "has no such locks";
}

TEST(Page, SaysHowFarRepeatsAreFromTheMedian) {
  Report report;
  report.measurements = {latency("redis queue", {60, 63, 54}), latency("file", {10, 10, 10})};
  const std::string section = section_of(to_html(report), "latency");
  EXPECT_THAT(section, HasSubstr("60.0 us <span class=\"soft\">±10 %</span>"));
  EXPECT_THAT(section, HasSubstr("<span>10.0 us</span>"));
}

TEST(Page, TellsServicesOfOneKindApart) {
  Report report;
  report.services = {service("redis", "queue"), service("redis", "queue")};
  report.services[1].label = "redis queue (2)";
  report.measurements = {latency("redis queue", {60}), latency("redis queue (2)", {70})};
  for (Measurement& each : report.measurements) each.cdf = {{50, 0.1}, {60, 0.5}};
  const std::string section = section_of(to_html(report), "latency");
  EXPECT_THAT(section, HasSubstr("</svg>queue</li>"));
  EXPECT_THAT(section, HasSubstr("</svg>queue (2)</li>"));
}

TEST(Page, EachPictureIsDescribed) {
  const XmlCheck checked = check_xml(to_html(synthetic_report()));
  std::multiset<std::string> ids;
  for (const XmlElement& element : checked.elements) {
    for (const auto& [name, value] : element.attributes) {
      if (name == "id") ids.insert(value);
    }
  }
  std::size_t pictures = 0;
  for (const XmlElement& element : checked.elements) {
    for (const auto& [name, value] : element.attributes) {
      EXPECT_TRUE(name != "id" || ids.count(value) == 1) << value;
      if (name != "aria-labelledby") continue;
      const auto blank = value.find(' ');
      EXPECT_EQ(ids.count(value.substr(0, blank)), 1U) << value;
      EXPECT_EQ(ids.count(value.substr(blank + 1)), 1U) << value;
      ++pictures;
    }
  }
  EXPECT_GE(pictures, 30U);
}

TEST(Page, LinksLeadToItsParts) {
  const XmlCheck checked = check_xml(to_html(synthetic_report()));
  std::set<std::string> ids;
  std::set<std::string> links;
  for (const XmlElement& element : checked.elements) {
    for (const auto& [name, value] : element.attributes) {
      if (name == "id") ids.insert("#" + value);
      if (name == "href") links.insert(value);
    }
  }
  EXPECT_GE(links.size(), 10U);
  EXPECT_TRUE(std::includes(ids.begin(), ids.end(), links.begin(), links.end()));
}

// Every text of a report, with what would be markup.
Report hostile_report() {
  const std::string evil = "</title><script>alert('\"&{0}')</script>\x01\x1b";
  Report report = synthetic_report();
  report.started = report.command = evil;
  for (auto& [name, value] : report.environment) name = value = evil;
  for (ServiceInfo& each : report.services) {
    const std::string old = each.label;
    each.label = evil + each.label;
    each.strategy = evil + each.strategy;
    each.url = evil;
    for (auto& [name, value] : each.settings) name = value = evil;
    for (Measurement& measured : report.measurements) {
      if (measured.service == old) measured.service = each.label;
    }
  }
  for (ServiceInfo& each : report.services) each.backend = evil + each.backend;
  for (Measurement& each : report.measurements) {
    for (Figure& figure : each.figures) figure.unit = evil;
  }
  report.problems = {{evil, evil, evil}};
  return report;
}

TEST(Page, NothingInTheDataIsMarkup) {
  const std::string page = to_html(hostile_report());
  const XmlCheck checked = check_xml(page);
  EXPECT_EQ(checked.error, "");
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_GE(count(page, "&lt;script&gt;"), 50U);
}

TEST(Page, NumbersMayBeAnything) {
  Report report = synthetic_report();
  const double odd[] = {
      0, -1, 1e300, 1e-300, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()};
  std::size_t next = 0;
  for (Measurement& each : report.measurements) {
    for (Figure& figure : each.figures) {
      for (double& value : figure.repeats) value = odd[next++ % std::size(odd)];
    }
    for (CdfPoint& point : each.cdf) {
      point.microseconds = odd[next++ % std::size(odd)];
      point.share = odd[next++ % std::size(odd)];
    }
  }
  const XmlCheck checked = check_xml(to_html(report));
  EXPECT_EQ(checked.error, "");
  for (const XmlElement& element : checked.elements) {
    for (const auto& [name, value] : element.attributes) {
      if (name.starts_with("aria") || name == "id") continue;
      EXPECT_THAT(value, Not(HasSubstr("nan"))) << element.name << " " << name;
      EXPECT_THAT(value, Not(HasSubstr("inf"))) << element.name << " " << name;
    }
  }
}

TEST(Page, SaysWhatIsSpecialAboutTheRun) {
  Report report = synthetic_report();
  EXPECT_THAT(to_html(report), Not(HasSubstr("class=\"note\">A quick run")));
  EXPECT_THAT(to_html(report), Not(HasSubstr("interrupted")));
  report.quick = true;
  report.complete = false;
  report.environment = {{"optimised", "no"}};
  EXPECT_THAT(to_html(report), HasSubstr("class=\"note\">A quick run"));
  EXPECT_THAT(to_html(report), HasSubstr("The run was interrupted"));
  EXPECT_THAT(to_html(report), HasSubstr("built without optimisation"));
}

TEST(Page, HasTheEnvironmentTheProblemsAndTheBudget) {
  const std::string text = check_xml(to_html(synthetic_report())).text;
  EXPECT_THAT(text, HasSubstr("AMD EPYC"));
  EXPECT_THAT(text, HasSubstr("appendonly: no"));
  EXPECT_THAT(text, HasSubstr("redis://localhost?strategy=queue"));
  EXPECT_THAT(text, HasSubstr("no other process can wait for a lock of this one"));
  EXPECT_THAT(text, HasSubstr("&lt;= 0.85 missed"));
  EXPECT_THAT(text, HasSubstr("&lt;= 0.80 met"));
}

TEST(Page, HasATableOfRatiosForEachFloor) {
  const std::string both = check_xml(to_html(synthetic_report())).text;
  EXPECT_THAT(both, HasSubstr("Against a lock by hand"));
  EXPECT_THAT(both, HasSubstr("What dlock itself costs"));
  Report report = synthetic_report();
  std::erase_if(report.measurements, [](const Measurement& each) { return each.who == Who::same_requests; });
  EXPECT_THAT(check_xml(to_html(report)).text, Not(HasSubstr("What dlock itself costs")));
}

TEST(Page, NothingMeasuredIsAPageToo) {
  const std::string text = check_xml(to_html({})).text;
  EXPECT_THAT(text, HasSubstr("Nothing was measured that could tell."));
  EXPECT_THAT(text, HasSubstr("No floor was measured."));
}

}  // namespace
}  // namespace dlock::bench
