// Text of a page. Whatever is not markup by its type is escaped, so that nothing in the data can be taken for markup.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/core.h>

namespace dlock::bench {

class Markup {
 public:
  Markup() = default;
  // For markup that is written in these sources.
  explicit Markup(std::string text) : text_(std::move(text)) {}

  Markup& operator+=(const Markup& other) {
    text_ += other.text_;
    return *this;
  }

  friend Markup operator+(Markup first, const Markup& second) { return first += second; }

  [[nodiscard]] const std::string& str() const noexcept { return text_; }
  [[nodiscard]] bool empty() const noexcept { return text_.empty(); }

 private:
  std::string text_;
};

// As text, and as the value of an attribute in quotes, in HTML and in XML.
[[nodiscard]] std::string escaped(std::string_view text);

namespace detail {

inline const std::string& insertable(const Markup& markup) noexcept {
  return markup.str();
}
inline std::string insertable(std::string_view text) {
  return escaped(text);
}
template <typename Number>
  requires std::is_arithmetic_v<Number>
Number insertable(Number number) noexcept {
  return number;
}

template <typename... Values>
std::string format(std::string_view pattern, const Values&... values) {
  return fmt::vformat(pattern, fmt::make_format_args(values...));
}

}  // namespace detail

// The pattern is markup; texts among the arguments are escaped.
template <typename... Arguments>
[[nodiscard]] Markup markup(std::string_view pattern, const Arguments&... arguments) {
  return Markup(detail::format(pattern, detail::insertable(arguments)...));
}

}  // namespace dlock::bench
