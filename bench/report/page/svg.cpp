#include "bench/report/page/svg.hpp"

#include <string>

namespace dlock::bench {

namespace {

constexpr std::size_t colours = 6;
constexpr std::size_t shapes = 5;  // not a multiple of the colours, so that twenty series differ

std::string_view to_string(Anchor anchor) {
  switch (anchor) {
    case Anchor::start:
      return "start";
    case Anchor::middle:
      return "middle";
    case Anchor::end:
      break;
  }
  return "end";
}

}  // namespace

void Svg::line(Place from, Place to, std::string_view css_class) {
  content_ += markup(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>)", from.x, from.y, to.x,
                     to.y, css_class);
}

void Svg::path(const std::vector<Place>& places, std::string_view css_class) {
  if (places.empty()) return;
  std::string way;
  for (const Place& each : places) way += fmt::format("{}{:.1f},{:.1f}", way.empty() ? "M" : "L", each.x, each.y);
  content_ += markup(R"(<path d="{}" class="{}"/>)", way, css_class);
}

void Svg::rectangle(Place corner, double width, double height, std::string_view css_class) {
  content_ += markup(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}"/>)", corner.x, corner.y,
                     width, height, css_class);
}

void Svg::text(Place place, Anchor anchor, std::string_view text, std::string_view css_class) {
  content_ += markup(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}">{}</text>)", place.x, place.y,
                     to_string(anchor), css_class, text);
}

void Svg::mark(Place place, std::size_t shape) {
  static constexpr std::string_view outlines[shapes - 1] = {
      "m-3.4,-3.4h6.8v6.8h-6.8z",             // square
      "m0,-4.4l4.4,7.6h-8.8z",                // triangle
      "m0,-4.8l4.8,4.8l-4.8,4.8l-4.8,-4.8z",  // diamond
      "m-3.6,-3.6l7.2,7.2m0,-7.2l-7.2,7.2",   // cross
  };
  shape %= shapes;
  if (shape == 0) {
    content_ += markup(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.6" class="mark"/>)", place.x, place.y);
  } else {
    content_ += markup(R"(<path d="M{:.1f},{:.1f}{}" class="mark"/>)", place.x, place.y, outlines[shape - 1]);
  }
}

void Svg::begin_colour(std::size_t number) {
  content_ += markup(R"(<g class="s{}">)", number % colours);
}

void Svg::end_colour() {
  content_ += Markup("</g>");
}

Markup Svg::finish(std::string_view id, std::string_view title, std::string_view description) const {
  return markup(R"(<svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-labelledby="{}-title {}-desc">)"
                R"(<title id="{}-title">{}</title><desc id="{}-desc">{}</desc>{}</svg>)",
                width_, height_, id, id, id, title, id, description, content_);
}

Markup Svg::finish_hidden() const {
  return markup(R"(<svg viewBox="0 0 {:.0f} {:.0f}" width="{:.0f}" height="{:.0f}" aria-hidden="true">{}</svg>)",
                width_, height_, width_, height_, content_);
}

}  // namespace dlock::bench
