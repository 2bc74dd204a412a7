#include "tests/unit/bench/report/page/xml_check.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace dlock::bench {

namespace {

constexpr std::string_view name_characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_:";

class Parser {
 public:
  explicit Parser(std::string_view page) : rest_(page) {}

  XmlCheck check() {
    try {
      if (!skip("<!DOCTYPE html>")) fail("no document type");
      while (!rest_.empty()) {
        if (rest_.front() == '<') {
          tag();
        } else {
          text();
        }
      }
      if (!open_.empty()) fail("not closed: " + open_.back());
    } catch (const std::runtime_error& error) {
      result_.error = error.what();
    }
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error(why + " before: " + std::string(rest_.substr(0, 60)));
  }

  bool skip(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }

  std::string_view take(std::size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::string name() {
    const std::string found(take(std::min(rest_.find_first_not_of(name_characters), rest_.size())));
    if (found.empty()) fail("no name");
    return found;
  }

  void check_references(std::string_view text) {
    for (auto at = text.find('&'); at != std::string_view::npos; at = text.find('&', at + 1)) {
      constexpr std::array known = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
      const std::string_view here = text.substr(at);
      if (std::none_of(known.begin(), known.end(), [&](const char* each) { return here.starts_with(each); })) {
        fail("bad reference");
      }
    }
    if (std::any_of(text.begin(), text.end(),
                    [](char c) { return static_cast<unsigned char>(c) < 0x20U && c != '\n' && c != '\t'; })) {
      fail("control character");
    }
  }

  void text() {
    const std::string_view found = take(std::min(rest_.find('<'), rest_.size()));
    check_references(found);
    if (open_.empty() && found.find_first_not_of("\n") != std::string_view::npos) fail("text outside");
    if (open_.empty() || open_.back() != "style") result_.text += found;
  }

  void tag() {
    if (skip("</")) {
      const std::string closed = name();
      if (open_.empty() || open_.back() != closed) fail("unexpected end of " + closed);
      open_.pop_back();
      if (!skip(">")) fail("end tag");
      return;
    }
    (void)skip("<");
    XmlElement element{name(), {}};
    while (skip(" ")) element.attributes.push_back(attribute());
    const bool empty = skip("/");
    if (!skip(">")) fail("tag");
    if (!empty) open_.push_back(element.name);
    result_.elements.push_back(std::move(element));
  }

  std::pair<std::string, std::string> attribute() {
    std::string key = name();
    if (!skip("=\"")) fail("attribute");
    std::string value(take(std::min(rest_.find('"'), rest_.size())));
    if (!skip("\"")) fail("attribute's end");
    if (value.find('<') != std::string::npos) fail("< in an attribute");
    check_references(value);
    return {std::move(key), std::move(value)};
  }

  std::string_view rest_;
  std::vector<std::string> open_;
  XmlCheck result_;
};

}  // namespace

XmlCheck check_xml(std::string_view page) {
  return Parser(page).check();
}

}  // namespace dlock::bench
