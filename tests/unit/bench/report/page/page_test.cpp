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
  }
}

TEST(Page, NamesInOneLineWhatHasNoFigures) {
  for (const Part& each : parts) {
    const std::string page = to_html(without_scenario(synthetic_report(), each.scenario));
    EXPECT_EQ(section_of(page, each.id), "") << each.id;
    EXPECT_THAT(page, Not(HasSubstr("href=\"#" + std::string(each.id) + "\""))) << each.id;
    const auto line = page.find("<p id=\"missing\">");
    ASSERT_NE(line, std::string::npos) << each.id;
    EXPECT_EQ(count(page.substr(line, page.find("</p>", line) - line),
                    "<span>--scenario</span> <span>" + std::string(each.scenario) + "</span>"),
              1U)
        << each.id;
  }
  EXPECT_THAT(to_html(synthetic_report()), Not(HasSubstr("id=\"missing\"")));
}

TEST(Page, WhatWasMeasuredWithoutSuchAFigureIsNotToBeMeasuredAgain) {
  Report report;
  report.services = {service("file", "")};
  report.measurements = {
      measurement(scenario::contention, "file", {{parameter::waiters, 2}}, {lower(figure::p50, {38})})};
  const std::string text = check_xml(to_html(report)).text;
  EXPECT_THAT(text, HasSubstr("The herd: what a hand-off costs the service; "));
  EXPECT_THAT(text, Not(HasSubstr("--scenario contention --scenario recovery")));
}

TEST(Page, BeginsWithItsContents) {
  const std::string page = to_html(synthetic_report());
  EXPECT_LT(page.find("<nav"), page.find("<h2"));
  EXPECT_LT(page.find("<nav"), page.find("<table"));
}

// What the overview says of a service, with markup.
std::string overview_of(const std::string& page, const std::string& service) {
  const auto table = page.find("<h2 id=\"overview\">");
  const auto from = page.find("rowheader\">" + service + "</th>", table);
  return page.substr(from, page.find("</tr>", from) - from);
}

constexpr const char* star = "★</span> ";

TEST(Page, MarksTheBestOfEachColumn) {
  Report report;
  report.services = {service("memory", "queue"), service("redis", "queue"), service("redis", "poll"),
                     service("etcd", "")};
  report.measurements = {latency("memory queue", {2}),         latency("redis queue", {60}),
                         latency("redis poll", {60.01}),       latency("etcd", {600}),
                         throughput("redis queue", 64, {900}), throughput("etcd", 8, {1000})};
  const std::string page = to_html(report);
  EXPECT_THAT(overview_of(page, "memory queue"), Not(HasSubstr(star))) << "no two machines can share it";
  EXPECT_THAT(overview_of(page, "redis queue"), HasSubstr(std::string(star) + "60.0 µs"));
  EXPECT_THAT(overview_of(page, "redis poll"), HasSubstr(std::string(star) + "60.0 µs")) << "it looks the same";
  EXPECT_THAT(overview_of(page, "redis queue"), HasSubstr(std::string(star) + "900 /s"));
  EXPECT_THAT(overview_of(page, "etcd"), Not(HasSubstr(star))) << "its throughput is that of fewer callers";
  EXPECT_THAT(overview_of(page, "etcd"), HasSubstr("style=\"--bar: 100.0%\""));
  EXPECT_THAT(overview_of(page, "redis queue"), HasSubstr("style=\"--bar: 10.0%\""));
}

TEST(Page, AmongEmbeddedServicesTheBestIsNotMemory) {
  Report report;
  report.services = {service("memory", "queue"), service("file", "")};
  report.measurements = {latency("memory queue", {2}), latency("file", {11})};
  const std::string page = to_html(report);
  EXPECT_THAT(overview_of(page, "memory queue"), Not(HasSubstr(star)));
  EXPECT_THAT(overview_of(page, "file"), HasSubstr(star));
}

TEST(Page, SaysWhatIsLost) {
  Report report;
  report.services = {service("redis", "queue", {{"appendonly", "no"}}), service("etcd", ""), service("file", "")};
  report.measurements = {latency("redis queue", {60}), latency("etcd", {600}), latency("file", {11})};
  const std::string page = to_html(report);
  EXPECT_THAT(overview_of(page, "redis queue"),
              HasSubstr("<a href=\"#safety\">crash: all locks<br/>failover: last grants</a>"));
  EXPECT_THAT(overview_of(page, "etcd"), HasSubstr("crash: nothing<br/>failover: nothing"));
  EXPECT_THAT(overview_of(page, "file"), HasSubstr(">no server</a>"));
}

TEST(Page, ThroughputOfAllServicesHasOneAxis) {
  const std::string section = section_of(to_html(synthetic_report()), "throughput");
  // From the first tick to the last one of the upright axis.
  std::set<std::string> axes;
  std::size_t pictures = 0;
  for (auto at = section.find("<desc id=\"throughput-"); at != std::string::npos;
       at = section.find("<desc id=\"throughput-", at + 1)) {
    if (section.compare(at, 33, "<desc id=\"throughput-asynchronous") == 0) continue;
    const auto from = section.find("</desc>", at);
    std::string ticks;
    const auto end = section.find("class=\"axis\"", from);
    for (auto tick = section.find(">", section.find("text-anchor=\"end\"", from)); tick < end;
         tick = section.find(">", section.find("text-anchor=\"end\"", tick))) {
      ticks += section.substr(tick, section.find("<", tick) - tick);
    }
    axes.insert(ticks);
    ++pictures;
  }
  EXPECT_EQ(pictures, 1U + 6U);
  EXPECT_EQ(axes.size(), 1U);
  EXPECT_THAT(section, HasSubstr("<h3>all services</h3>"));
}

TEST(Page, NamesTheFloorsWhereTheyShow) {
  const std::string page = to_html(synthetic_report());
  for (const char* id : {"latency", "throughput"}) {
    const std::string text = section_of(page, id);
    EXPECT_THAT(text, HasSubstr("hand-written client of the same service")) << id;
    EXPECT_THAT(text, HasSubstr("over a bare connection")) << id;
  }
  EXPECT_THAT(page, HasSubstr("<h3>By hand: a hand-written client of the same service</h3>"));
  EXPECT_THAT(page, HasSubstr("<h3>Same requests, over a bare connection: what dlock itself costs</h3>"));
}

TEST(Page, ExplainsTheFloorOfFilesWhereItShows) {
  const std::string explained = "The floor of file is the fastest";
  EXPECT_EQ(count(to_html(synthetic_report()), explained), 2U);
  Report report = synthetic_report();
  std::erase_if(report.measurements, [](const Measurement& each) { return each.service == "file"; });
  EXPECT_THAT(to_html(report), Not(HasSubstr(explained)));
}

TEST(Page, HasAPictureForEachBackend) {
  const std::string page = to_html(synthetic_report());
  // One of all services, and the distributions.
  EXPECT_EQ(count(section_of(page, "latency"), "role=\"img\" aria-labelledby"), 1U + 6U);
  // One of all services, one of asynchronous calls.
  EXPECT_EQ(count(section_of(page, "throughput"), "role=\"img\" aria-labelledby"), 6U + 2U);
  EXPECT_EQ(count(section_of(page, "hand-off"), "role=\"img\" aria-labelledby"), 6U);
  EXPECT_EQ(count(section_of(page, "herd"), "role=\"img\" aria-labelledby"), 5U);  // nobody counts for "file"
  EXPECT_EQ(count(section_of(page, "distance"), "role=\"img\" aria-labelledby"), 2U * 4U);
  // One of all services for each number of callers and share of reads, for the permits, and for the writer's wait.
  EXPECT_EQ(count(section_of(page, "sharing"), "role=\"img\" aria-labelledby"), 4U + 1U + 1U);
}

TEST(Page, DistanceBeginsWithWhatWasMeasuredWithoutIt) {
  Report report;
  report.services = {service("redis", "queue")};
  report.measurements = {
      latency("redis queue", {60}),
      measurement(scenario::distance, "redis queue", {{parameter::round_trip_ms, 5}}, {lower(figure::p50, {10'060})})};
  const std::string section = section_of(to_html(report), "distance");
  EXPECT_THAT(section, HasSubstr("queue: 60.0 µs at 0, 10.1 ms at 5."));
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
  EXPECT_THAT(section, HasSubstr("redis queue: p50 61.2 µs, p99 1.30 ms. "));
  EXPECT_THAT(section, HasSubstr(">4 permits, 64 callers</th>"));
  EXPECT_THAT(section, HasSubstr("<span>700 /s</span>"));
  EXPECT_THAT(section, Not(HasSubstr("broadcast"))) << "has no such locks";
}

TEST(Page, SaysHowFarRepeatsAreFromTheMedian) {
  Report report;
  report.measurements = {latency("redis queue", {60, 63, 54}), latency("file", {10, 10, 10})};
  const std::string section = section_of(to_html(report), "latency");
  EXPECT_THAT(section, HasSubstr("60.0 µs <span class=\"soft\">±10 %</span>"));
  EXPECT_THAT(section, HasSubstr("<span>10.0 µs</span>"));
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
  EXPECT_THAT(both, HasSubstr("Against the floors"));
  EXPECT_THAT(both, HasSubstr("Same requests, over a bare connection: "));
  Report report = synthetic_report();
  std::erase_if(report.measurements, [](const Measurement& each) { return each.who == Who::same_requests; });
  EXPECT_THAT(check_xml(to_html(report)).text, Not(HasSubstr("Same requests, over a bare connection: ")));
}

TEST(Page, NothingMeasuredIsAPageToo) {
  const std::string text = check_xml(to_html({})).text;
  EXPECT_THAT(text, HasSubstr("Nothing was measured that could tell."));
  EXPECT_THAT(text, HasSubstr("No floor was measured."));
}

}  // namespace
}  // namespace dlock::bench
