#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "bench/report/figures.hpp"
#include "bench/report/report.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

constexpr double smallest_change = 0.05;

// Whether the figure changed by more than noise.
bool changed(const Figure& before, const Figure& after) {
  if (before.repeats.empty() || after.repeats.empty()) return false;
  const bool apart = before.highest() < after.lowest() || after.highest() < before.lowest();
  return apart && std::abs(after.median() - before.median()) > smallest_change * std::abs(before.median());
}

std::string percent(double before, double after) {
  return before == 0 ? "" : fmt::format("{:+.0f} %", (after / before - 1) * 100);
}

std::string figure_text(const Figure& figure) {
  return plain_units(quantity_text(figure.median(), printable(figure.unit)));
}

class Comparer {
 public:
  Comparer(const Report& before, const Report& after) : before_(before), after_(after) {}

  Comparison compare() {
    add_line(fmt::format("before: {}", run_text(before_)));
    add_line(fmt::format("after:  {}", run_text(after_)));
    warn();
    for (const std::string& each : before_.labels()) compare_service(each);
    if (!any_change_) add_line("\nNothing changed beyond the noise.");
    list_only("before", before_, after_);
    list_only("after", after_, before_);
    return std::move(result_);
  }

 private:
  static std::string run_text(const Report& report) {
    return printable(report.started) + (report.quick ? ", quick" : "") + (report.complete ? "" : ", interrupted");
  }

  void add_line(const std::string& line) { result_.text += line + "\n"; }

  void warn() {
    warn_of_chance();
    if (before_.quick != after_.quick) add_line("warning: only one of them is a quick run");
    warn_of_settings("", before_.environment, after_.environment);
    for (const ServiceInfo& each : before_.services) {
      const ServiceInfo* other = after_.service(each.label);
      if (other != nullptr) warn_of_settings(each.label + ": ", each.settings, other->settings);
    }
  }

  // How often all of so many repeats are below, or above, all of as many others, if their order is random.
  void warn_of_chance() {
    std::size_t repeats = 0;
    for (const Measurement& each : before_.measurements) {
      const Measurement* other = after_.find(each.scenario, each.service, each.who, each.parameters);
      for (const Figure& figure : each.figures) {
        const Figure* its = other == nullptr ? nullptr : other->figure(figure.name);
        if (its != nullptr) repeats = std::max(repeats, std::min(figure.repeats.size(), its->repeats.size()));
      }
    }
    constexpr std::size_t enough = 5;  // one in 126
    if (repeats == 0 || repeats >= enough) return;
    std::size_t orders = 1;
    for (std::size_t i = 1; i <= repeats; ++i) orders = orders * (repeats + i) / i;
    add_line(fmt::format("warning: with {} repeat{} chance alone may move one figure in {}", repeats,
                         repeats == 1 ? "" : "s", orders / 2));
  }

  void warn_of_settings(const std::string& of, const Settings& before, const Settings& after) {
    const auto value_of = [](const Settings& settings, const std::string& name) -> std::string {
      const auto found =
          std::find_if(settings.begin(), settings.end(), [&](const auto& each) { return each.first == name; });
      return found == settings.end() ? "unknown" : found->second;
    };
    const auto compare_one = [&](const std::string& name) {
      const std::string old_value = value_of(before, name);
      const std::string new_value = value_of(after, name);
      if (old_value == new_value) return;
      // A comparison is made to compare revisions.
      const bool expected = of.empty() && (name == "dlock" || name == "revision");
      add_line(printable(fmt::format("{}{}{}: {} -> {}", expected ? "" : "warning: ", of, name, old_value, new_value)));
    };
    for (const auto& [name, value] : before) compare_one(name);
    for (const auto& [name, value] : after) {
      if (value_of(before, name) == "unknown") compare_one(name);
    }
  }

  // With a different lease, all other figures are expected to differ.
  bool lease_differs(const Measurement& before, const Measurement& after) {
    const Figure* old_lease = before.figure(figure::lease);
    const Figure* new_lease = after.figure(figure::lease);
    if (old_lease == nullptr || new_lease == nullptr || old_lease->median() == new_lease->median()) return false;
    add_line(printable(fmt::format("warning: {}: {} is not compared, because the lease differs: {} -> {}",
                                   before.service, name_of(before), figure_text(*old_lease), figure_text(*new_lease))));
    return true;
  }

  void compare_service(const std::string& label) {
    std::string lines;
    for (const Measurement& before : before_.measurements) {
      if (before.service != label) continue;
      const Measurement* after = after_.find(before.scenario, label, before.who, before.parameters);
      if (after == nullptr || lease_differs(before, *after)) continue;
      for (const Figure& figure : before.figures) {
        const Figure* other = after->figure(figure.name);
        if (other == nullptr || figure.better == Better::neither || !changed(figure, *other)) continue;
        lines += line_of(before, figure, *other);
      }
    }
    if (lines.empty()) return;
    any_change_ = true;
    result_.text += "\n" + printable(label) + "\n" + lines;
  }

  // A slower floor says something about the machine or the service, but not about dlock.
  std::string line_of(const Measurement& measurement, const Figure& before, const Figure& after) {
    const bool worse = (before.better == Better::lower) == (after.median() > before.median());
    if (worse && measurement.who == Who::dlock) result_.slower = true;
    return fmt::format("  {:<6}  {:<44}  {:>9} -> {:>9}  {:>6}\n", worse ? "worse" : "better",
                       printable(name_of(measurement) + ", " + before.name), figure_text(before), figure_text(after),
                       percent(before.median(), after.median()));
  }

  void list_only(const char* where, const Report& report, const Report& other) {
    std::string lines;
    for (const Measurement& each : report.measurements) {
      const std::string name = printable(each.service + ": " + name_of(each));
      const Measurement* counterpart = other.find(each.scenario, each.service, each.who, each.parameters);
      if (counterpart == nullptr) {
        lines += "  " + name + "\n";
        continue;
      }
      for (const Figure& figure : each.figures) {
        if (counterpart->figure(figure.name) == nullptr) {
          lines += fmt::format("  {}, {}\n", name, printable(figure.name));
        }
      }
    }
    if (!lines.empty()) result_.text += fmt::format("\nMeasured only {}:\n{}", where, lines);
  }

  const Report& before_;
  const Report& after_;
  Comparison result_;
  bool any_change_ = false;
};

}  // namespace

Comparison compare(const Report& before, const Report& after) {
  return Comparer(before, after).compare();
}

}  // namespace dlock::bench
