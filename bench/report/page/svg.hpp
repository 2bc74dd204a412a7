// A picture.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "bench/report/page/markup.hpp"

namespace dlock::bench {

struct Place {
  double x;
  double y;
};

// Of a picture among others in lines of three.
enum class Height { one_line, two_lines };

enum class Anchor { start, middle, end };

// Lines and marks take the colour of the group that they are in: see style.cpp.
class Svg {
 public:
  Svg(double width, double height) : width_(width), height_(height) {}

  void line(Place from, Place to, std::string_view css_class);
  void path(const std::vector<Place>& places, std::string_view css_class);
  void rectangle(Place corner, double width, double height, std::string_view css_class);
  void text(Place place, Anchor anchor, std::string_view text, std::string_view css_class = {});
  // A circle, square, triangle, diamond or cross, by number.
  void mark(Place place, std::size_t shape);
  void begin_colour(std::size_t number);
  void end_colour();

  // The id must be unique in the page. The description is for those who do not see the picture.
  [[nodiscard]] Markup finish(std::string_view id, std::string_view title, std::string_view description) const;
  // For decoration.
  [[nodiscard]] Markup finish_hidden() const;

 private:
  double width_;
  double height_;
  Markup content_;
};

}  // namespace dlock::bench
