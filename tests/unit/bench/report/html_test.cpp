#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include <nlohmann/json.hpp>

#include "bench/report/report.hpp"
#include "bench/report/units.hpp"
#include "tests/unit/bench/report/sample.hpp"

namespace dlock::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const auto begin = text.find(from);
  if (begin == std::string::npos) return {};
  const auto end = text.find(to, begin + from.size());
  return text.substr(begin + from.size(), end - begin - from.size());
}

std::string section_of(const std::string& page, const std::string& id) {
  return between(page, "<section id=\"" + id + "\">", "</section>");
}

// The row of a service in the table at the top.
std::string overview_of(const std::string& page, const std::string& service) {
  return between(section_of(page, "overview"), "rowheader\">" + service + "</th>", "</tr>");
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++found;
  return found;
}

std::string embedded_json(const std::string& page) {
  return between(page, "<script type=\"application/json\" id=\"report\">", "</script>");
}

// Without scripts, without tags.
std::string visible_text(std::string page) {
  page.erase(page.find("<script"));
  return std::regex_replace(page.substr(page.find("<main>")), std::regex("<[^>]*>"), "");
}

constexpr const char* star = "★</span> ";

TEST(HtmlTest, Page_HasEveryFigureInATable) {
  const Report report = golden_report();
  const std::string text = visible_text(to_html(report));
  for (const ServiceInfo& each : report.services) EXPECT_THAT(text, HasSubstr(each.url));
  for (const Measurement& each : report.measurements) {
    const std::string row = between(text, each.service + name_of(each), "\n");
    for (const Figure& figure : each.figures) {
      EXPECT_THAT(row, HasSubstr(quantity_text(figure.median(), figure.unit)))
          << each.service << ": " << name_of(each) << ", " << figure.name;
    }
  }
}

TEST(HtmlTest, Page_HasTheReportForItsScriptAndNoPlaceholder) {
  const Report report = golden_report();
  EXPECT_EQ(nlohmann::json::parse(embedded_json(to_html(report))), nlohmann::json::parse(to_json(report)));
  for (const std::string& page : {to_html(report), to_html({})}) {
    EXPECT_THAT(page, Not(HasSubstr("{{")));
    EXPECT_THAT(page, testing::EndsWith("</html>\n"));
  }
}

TEST(HtmlTest, Page_LoadsNothing) {
  std::string page = to_html(golden_report());
  EXPECT_THAT(page, HasSubstr("content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\""));
  const std::string name_of_svg = "http://www.w3.org/2000/svg";
  page.erase(page.find(name_of_svg), name_of_svg.size());
  for (const char* each : {"http:", "https:", "src=", "url(", "@import", "import(", "fetch(", "<link", "innerHTML"}) {
    EXPECT_THAT(page, Not(HasSubstr(each)));
  }
  EXPECT_FALSE(std::regex_search(page, std::regex("<[^>]* on[a-z]+ *="))) << "a handler in an attribute";
}

// Each text of a report is markup, or would end the script.
TEST(HtmlTest, MarkupInTheData_IsEscaped) {
  const std::string evil = "</script></title><!--<script>alert('\"&{{json}}')</script><b onclick=\"x\">";
  Report report = golden_report();
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
  EXPECT_EQ(count(page, "<script"), 2U);
  EXPECT_EQ(count(page, "</script>"), 2U);
  EXPECT_THAT(page, Not(HasSubstr("<!--")));
  EXPECT_THAT(page, Not(HasSubstr("<b onclick")));
  EXPECT_THAT(page.substr(0, page.find("<script")), Not(HasSubstr("alert('\""))) << "ends an attribute";
  EXPECT_GE(count(page, "&lt;script&gt;"), 30U);
  EXPECT_EQ(nlohmann::json::parse(embedded_json(page)), nlohmann::json::parse(to_json(report)));
}

TEST(HtmlTest, Links_LeadToSections) {
  const std::string page = to_html(golden_report());
  const std::string contents = between(page, "<nav aria-label=\"Contents\">", "</nav>");
  const std::regex link("href=\"#([a-z]+)\"");
  std::size_t links = 0;
  for (std::sregex_iterator each(contents.begin(), contents.end(), link); each != std::sregex_iterator();
       ++each, ++links) {
    EXPECT_THAT(page, HasSubstr("id=\"" + (*each)[1].str() + "\""));
  }
  EXPECT_EQ(links, 13U);
}

// A section, and what makes a measurement one of its own.
const std::pair<const char*, Measurement> sections[] = {
    {"latency", latency("file", {1})},
    {"throughput", throughput("file", 8, {1})},
    {"contention", hand_off("file", 8, 1)},
    {"recovery", measurement(scenario::recovery, "file", {}, {lower(figure::p50, {1})})},
    {"distance", measurement(scenario::latency, "file", {{parameter::round_trip_ms, 5}}, {lower(figure::p50, {1})})},
    {"holding", throughput("file", Parameters{{parameter::held, 100}}, {1})},
    {"mix", measurement(scenario::contention, "file", {{parameter::callers, 64}, {parameter::names, 1000}},
                        {lower(figure::p50, {1})})},
    {"sharing", writers_wait("file", {1}, {2})},
};

TEST(HtmlTest, MeasuredScenario_HasASection) {
  const std::string all = to_html(golden_report());
  EXPECT_THAT(all, Not(HasSubstr("id=\"missing\"")));
  for (const auto& [id, measured] : sections) {
    EXPECT_THAT(all, HasSubstr("<div class=\"charts\" data-chart=\"" + std::string(id) + "\">"));
    Report report;
    report.measurements = {measured};
    const std::string page = to_html(report);
    for (const auto& [other, unused] : sections) {
      EXPECT_EQ(section_of(page, other).empty(), std::string(other) != id) << id << " " << other;
    }
    EXPECT_THAT(visible_text(page), HasSubstr("Without figures in this run: ")) << id;
  }
  Report report = golden_report();
  std::erase_if(report.measurements, [](const Measurement& each) { return each.scenario == scenario::recovery; });
  report.services = {service("etcd", "")};
  EXPECT_THAT(visible_text(to_html(report)),
              HasSubstr("Without figures in this run: recovery. dlock bench --url etcd:// --scenario recovery\n"));
  report = golden_report();
  std::erase_if(report.measurements,
                [](const Measurement& each) { return each.parameters.contains(parameter::round_trip_ms); });
  EXPECT_THAT(visible_text(to_html(report)), HasSubstr("Without figures in this run: round trips.\n"));
}

TEST(HtmlTest, BestServiceOfAColumn_HasAStar) {
  Report report;
  report.services = {service("memory", "queue"), service("redis", "queue"), service("redis", "poll"),
                     service("etcd", "")};
  report.measurements = {latency("memory queue", {2}),         latency("redis queue", {60}),
                         latency("redis poll", {60.01}),       latency("etcd", {600}),
                         throughput("redis queue", 64, {900}), throughput("etcd", 8, {1000})};
  const std::string page = to_html(report);
  EXPECT_THAT(overview_of(page, "memory queue"), Not(HasSubstr(star)));
  EXPECT_THAT(overview_of(page, "memory queue"), Not(HasSubstr("--long")));
  EXPECT_THAT(overview_of(page, "redis queue"), HasSubstr(std::string(star) + "60.0 "));
  EXPECT_THAT(overview_of(page, "redis poll"), HasSubstr(std::string(star) + "60.0 ")) << "it looks the same";
  EXPECT_THAT(overview_of(page, "redis queue"), HasSubstr(std::string(star) + "900 "));
  EXPECT_THAT(overview_of(page, "etcd"), Not(HasSubstr(star))) << "its throughput is that of fewer callers";
  EXPECT_THAT(overview_of(page, "etcd"), HasSubstr("/s @8"));
  EXPECT_THAT(overview_of(page, "etcd"), HasSubstr("style=\"--long:100.0\""));
  EXPECT_THAT(overview_of(page, "redis queue"), HasSubstr("style=\"--long:10.0\""));
  report.services = {service("memory", "queue"), service("file", "")};
  report.measurements = {latency("memory queue", {2}), latency("file", {11})};
  EXPECT_THAT(overview_of(to_html(report), "memory queue"), Not(HasSubstr(star)));
  EXPECT_THAT(overview_of(to_html(report), "file"), HasSubstr(star));
}

TEST(HtmlTest, LossesOfAService_AreInTheOverview) {
  Report report;
  report.services = {service("redis", "queue"), service("etcd", ""), service("file", "")};
  report.services[0].crash = "all locks";
  report.services[0].failover = "last grants";
  report.measurements = {latency("redis queue", {60}), latency("etcd", {600}), latency("file", {11})};
  const std::string page = to_html(report);
  EXPECT_THAT(overview_of(page, "redis queue"), HasSubstr("in a crash\" class=\"words\"><span>all locks</span>"));
  EXPECT_THAT(overview_of(page, "redis queue"), HasSubstr("in a failover\" class=\"words\"><span>last grants</span>"));
  EXPECT_EQ(count(overview_of(page, "etcd"), "not known"), 2U);
  EXPECT_EQ(count(overview_of(page, "file"), "no server"), 2U);
}

TEST(HtmlTest, Ratios_HaveTheirBudgets) {
  Report report;
  report.services = {service("redis", "queue")};
  report.measurements = {latency("redis queue", {90}), latency("redis queue", {100}, Who::by_hand),
                         throughput("redis queue", 8, {30}), throughput("redis queue", 8, {20}, Who::by_hand)};
  const std::string section = section_of(to_html(report), "ratios");
  EXPECT_THAT(section, HasSubstr("<span>0.90<br><span class=\"bad\">&lt;= 0.85 missed</span></span>"));
  EXPECT_THAT(section, HasSubstr("<span>1.50<br><span class=\"good\">&gt;= 1.00 met</span></span>"));
  report.measurements.resize(1);
  EXPECT_EQ(section_of(to_html(report), "ratios"), "");
}

TEST(HtmlTest, Repeats_HaveTheirDistanceFromTheMedian) {
  Report report;
  report.measurements = {latency("redis queue", {60, 63, 54}), latency("file", {10, 10, 10})};
  const std::string text = visible_text(to_html(report));
  EXPECT_THAT(text, HasSubstr("redis queuelatency60.0 µs ±10 %\n"));
  EXPECT_THAT(text, HasSubstr("filelatency10.0 µs\n"));
}

TEST(HtmlTest, QuickOrInterruptedRun_HasANote) {
  Report report = golden_report();
  EXPECT_THAT(to_html(report), Not(HasSubstr("class=\"note\"")));
  report.quick = true;
  report.complete = false;
  report.environment = {{"optimised", "no"}};
  for (const char* each : {"A quick run", "The run was interrupted", "dlock was built without optimisation"}) {
    EXPECT_THAT(to_html(report), HasSubstr("<p class=\"note\">" + std::string(each)));
  }
}

TEST(HtmlTest, EnvironmentProblemsAndCommand_AreShown) {
  Report report = golden_report();
  report.services = {service("redis", "queue", {{"appendonly", "no"}}), service("redis", "poll"),
                     service("redis", "broadcast")};
  report.services[1].url = "file:///a b'$(c)";
  const std::string text = visible_text(to_html(report));
  EXPECT_THAT(text, HasSubstr("processorAMD EPYC 7R13 Processor\n"));
  EXPECT_THAT(text, HasSubstr("redis://appendonly: no\n"));
  EXPECT_THAT(text, HasSubstr("memory queue, recovery: no other process can wait for a lock of this one\n"));
  EXPECT_THAT(text, HasSubstr("The run again: dlock bench --url redis:// --url 'file:///a b'\\''$(c)'\n"));
  report.command = "dlock bench --url etcd://a";
  EXPECT_THAT(visible_text(to_html(report)), HasSubstr("The run again: dlock bench --url etcd://a\n"));
}

}  // namespace
}  // namespace dlock::bench
