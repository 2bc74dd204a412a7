#include "bench/session.hpp"

#include <algorithm>
#include <ctime>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <dlock/error.hpp>
#include <dlock/spi/url.hpp>

#include "bench/environment.hpp"
#include "bench/scenarios/scenario.hpp"
#include "bench/targets/catalog.hpp"

namespace dlock::bench {

namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::seconds reach_limit{5};

// For messages about a URL that may be invalid.
std::string url_for_people(const std::string& url) {
  try {
    return Url::parse(url).redacted();
  } catch (const Error&) {
    const auto end = url.find("://");
    return end == std::string::npos ? "a URL without a scheme" : url.substr(0, end) + "://***";
  }
}

std::string now_in_utc() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  (void)::gmtime_r(&now, &parts);  // fails for years that do not fit an int
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

// Estimates the remaining time from the steps so far.
class Forecast {
 public:
  void expect(nanoseconds more) { expected_ += more; }
  void begin() { started_ = Clock::now(); }
  void done(nanoseconds step) { carried_out_ += step; }
  [[nodiscard]] nanoseconds remaining() const {
    const auto rest = std::chrono::duration<double>(expected_ - carried_out_);
    if (carried_out_ <= nanoseconds::zero()) return expected_;
    const auto pace =
        std::chrono::duration<double>(Clock::now() - started_) / std::chrono::duration<double>(carried_out_);
    return std::chrono::duration_cast<nanoseconds>(rest * pace);
  }

 private:
  nanoseconds expected_{};
  nanoseconds carried_out_{};
  Clock::time_point started_;
};

class Run {
 public:
  Run(const Plan& plan, Progress& progress, const std::stop_token& stop)
      : plan_(plan), progress_(progress), stop_(stop) {}

  Report carry_out() {
    report_.started = now_in_utc();
    report_.quick = plan_.quick;
    report_.command = plan_.command;
    report_.environment = environment();
    const auto started = Clock::now();
    find_targets();
    forecast_.begin();
    for (auto& [target, steps] : work_) measure(*target, steps);
    report_.complete = !stop_.stop_requested();
    report_.seconds = std::chrono::duration<double>(Clock::now() - started).count();
    return std::move(report_);
  }

 private:
  struct Work {
    std::unique_ptr<Target> target;
    std::vector<Step> steps;
  };

  void find_targets() {
    for (const std::string& url : plan_.urls.empty() ? usual_urls() : plan_.urls) {
      if (stop_.stop_requested()) return;
      try {
        for (auto& target : make_targets(url, reach_limit)) add(std::move(target));
      } catch (const std::exception& error) {
        report_problem({.service = url_for_people(url), .scenario = {}, .message = error.what()});
      }
    }
  }
  void add(std::unique_ptr<Target> target) {
    // Two services of the same kind.
    const auto taken = [this](const std::string& label) {
      return std::any_of(work_.begin(), work_.end(), [&](const Work& each) { return each.target->label() == label; });
    };
    const std::string label = target->label();
    for (int number = 2; taken(target->label()); ++number) target->set_label(fmt::format("{} ({})", label, number));
    // Added before its steps are made, so that it is cleaned up even if that fails.
    Work& work = work_.emplace_back(Work{.target = std::move(target), .steps = {}});
    report_.services.push_back(work.target->info());
    work.steps = steps_of(*work.target, plan_);
    for (const Step& step : work.steps) forecast_.expect(step.expected);
  }
  void measure(Target& target, std::vector<Step>& steps) {
    for (const Step& step : steps) {
      if (stop_.stop_requested()) break;
      progress_.step(target.label(), step.what, forecast_.remaining());
      try {
        for (Measurement& each : step.run(stop_)) report_.measurements.push_back(std::move(each));
      } catch (const std::exception& error) {
        // An interrupted step may fail because of the stop.
        if (!stop_.stop_requested()) {
          report_problem({.service = target.label(), .scenario = step.what, .message = error.what()});
        }
      }
      forecast_.done(step.expected);
    }
    steps.clear();  // they may have clients
    try {
      target.clean_up();
    } catch (const std::exception& error) {
      report_problem(
          {.service = target.label(),
           .scenario = {},
           .message = fmt::format("what the benchmark left in the service could not be removed: {}", error.what())});
    }
  }
  void report_problem(Problem problem) {
    progress_.problem(problem);
    report_.problems.push_back(std::move(problem));
  }

  const Plan& plan_;
  Progress& progress_;
  std::stop_token stop_;
  Report report_;
  Forecast forecast_;
  std::vector<Work> work_;
};

}  // namespace

Report run_benchmarks(const Plan& plan, Progress& progress, const std::stop_token& stop) {
  return Run(plan, progress, stop).carry_out();
}

}  // namespace dlock::bench
