// A figure against a parameter: a picture for each backend, all with the same axes, so that they can be compared.
#pragma once

#include <string>
#include <vector>

#include "bench/report/page/groups.hpp"
#include "bench/report/page/markup.hpp"
#include "bench/report/result.hpp"

namespace dlock::bench {

struct Curve {
  const char* figure;
  Who who = Who::dlock;
  bool dashed = false;
  const char* name = "";  // of dashed ones
};

enum class Spacing { linear, logarithmic };

struct LinePanels {
  std::string id;
  std::string title;         // of each picture, before the backend
  std::string heading = {};  // after the backend
  const char* scenario;
  const char* parameter;
  Parameters others = {};  // which the measurements have as well
  std::vector<Curve> curves;
  std::string x_title;
  std::string y_title;
  const char* unit;
  Spacing spacing = Spacing::logarithmic;  // linear: both axes begin at 0
  bool together = false;                   // begins with a picture of all services
};

// Nothing where nothing was measured.
[[nodiscard]] Markup draw(const LinePanels& panels, const Report& report, const std::vector<Group>& groups);

}  // namespace dlock::bench
