// Where values lie in a chart.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dlock::bench {

struct Tick {
  double share;  // of the way along the axis
  std::string label;
};

class Axis {
 public:
  // From 0 to a round number that no value exceeds.
  [[nodiscard]] static Axis from_zero(const std::vector<double>& values, std::string title, std::string_view unit);
  // Over all values above 0, between round numbers. Other values lie at its lower end.
  [[nodiscard]] static Axis logarithmic(const std::vector<double>& values, std::string title, std::string_view unit);
  // With ticks at the values themselves. Logarithmic if all of them are above 0.
  [[nodiscard]] static Axis of(std::vector<double> values, std::string title);
  // Of shares, more of it for those close to 1: 0, 50 %, 90 %, 99 %, ... Ends at most_share().
  [[nodiscard]] static Axis of_shares(std::string title);
  [[nodiscard]] static double most_share() noexcept { return 0.9999; }

  // Between 0 and 1, also for values beyond its ends.
  [[nodiscard]] double share(double value) const noexcept;

  [[nodiscard]] const std::vector<Tick>& ticks() const noexcept { return ticks_; }
  [[nodiscard]] const std::string& title() const noexcept { return title_; }

 private:
  enum class Kind { linear, logarithmic, shares };

  Axis(Kind kind, double from, double to, std::string title);
  [[nodiscard]] double stretched(double value) const noexcept;
  void add_tick(double value, std::string label);

  Kind kind_;
  double from_ = 0;  // stretched
  double to_ = 1;
  std::string title_;
  std::vector<Tick> ticks_;
};

}  // namespace dlock::bench
