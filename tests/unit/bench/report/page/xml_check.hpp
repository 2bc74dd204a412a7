// Whether a page is well-formed XML, as far as pages go.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dlock::bench {

struct XmlElement {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;  // values as they are written
};

struct XmlCheck {
  std::string error;  // empty: well-formed
  std::vector<XmlElement> elements;
  std::string text;  // all text, without what is in style elements
};

[[nodiscard]] XmlCheck check_xml(std::string_view page);

}  // namespace dlock::bench
