#include "tests/unit/torture/checker/history_text.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

namespace dlock::torture {
namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;
using Options = std::map<std::string_view, std::string_view>;

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (;; text.remove_prefix(parts.back().size() + separator.size())) {
    parts.push_back(text.substr(0, text.find(separator)));
    if (parts.back().size() == text.size()) return parts;
  }
}

template <class Number>
Number number(std::string_view text) {
  Number value{};
  if (std::from_chars(text.data(), text.data() + text.size(), value).ptr != text.data() + text.size() || text.empty()) {
    throw std::invalid_argument("no number: " + std::string(text));
  }
  return value;
}

nanoseconds time(std::string_view text) {
  static const std::map<std::string_view, nanoseconds> units{{"", 0ns}, {"ns", 1ns},   {"us", 1us}, {"ms", 1ms},
                                                             {"s", 1s}, {"min", 1min}, {"h", 1h}};
  const std::size_t end = std::min(text.find_first_not_of("-0123456789"), text.size());
  return number<std::int64_t>(text.substr(0, end)) * units.at(text.substr(end));
}

Event lock(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {.lock = std::string(text)};
  const std::string_view how = text.substr(0, colon);
  Event lock{.lock = std::string(text.substr(colon + 1)), .lock_kind = LockKind::read_write};
  if (how == "election") {
    lock.lock_kind = LockKind::election;
  } else if (how == "read") {
    lock.mode = Mode::shared;
  } else if (how != "write") {
    lock.lock_kind = LockKind::semaphore;
    lock.permits = number<std::uint32_t>(how);
  }
  return lock;
}

class Reader {
 public:
  std::vector<Event> read(std::string_view text) {
    for (const std::string_view group : split(text, "; ")) {
      const std::size_t colon = std::min(group.find(": "), group.size());
      const bool of_process = group.find_first_not_of("0123456789") == colon;
      const int process = of_process ? number<int>(group.substr(0, colon)) : 0;
      for (const std::string_view step : split(group.substr(of_process ? colon + 2 : 0), ", ")) take(process, step);
    }
    return std::move(events_);
  }

 private:
  struct Acquires {
    std::uint64_t asked = 0;
    Event current{};
  };

  void take(int process, std::string_view step) {
    std::vector<std::string_view> words = split(step, " ");
    if (words[0].starts_with('+')) {
      next_ = last_ + time(words[0].substr(1));
      step.remove_prefix(words[0].size() + 1);
      words.erase(words.begin());
    }
    const std::string rest(step.substr(std::min(words[0].size() + 1, step.size())));
    std::size_t end = 1;  // of what comes before the options
    while (end < words.size() && !std::set<std::string_view>{"for", "as", "of", "on"}.contains(words[end])) ++end;
    Options options;
    for (std::size_t i = end; i + 1 < words.size(); i += 2) options[words[i]] = words[i + 1];
    words.resize(end);
    process == 0 ? take_deed(words, rest, options) : take_own(process, words, rest, options);
  }

  void take_own(int process, const std::vector<std::string_view>& words, const std::string& rest,
                const Options& options) {
    static const std::map<std::string_view, Event> plain{
        {"cancels", {.kind = Kind::cancelled}},  {"held", {.kind = Kind::looked, .yes = true}},
        {"unheld", {.kind = Kind::looked}},      {"lost", {.kind = Kind::lost}},
        {"releases", {.kind = Kind::releasing}}, {"released", {.kind = Kind::released, .yes = true}},
        {"disowned", {.kind = Kind::released}},  {"unreleased", {.kind = Kind::unreleased, .word = "unavailable"}},
    };
    const std::string_view verb = words[0];
    Acquires& acquires = acquires_[process];
    Event event;
    if (verb == "asks") {
      acquires.current = lock(words.at(1));
      event.permits = acquires.current.permits;
      acquires.current.attempt = options.contains("as") ? number<std::uint64_t>(options.at("as")) : ++acquires.asked;
      event.kind = Kind::asked;
      event.until = options.contains("for") ? next_ + time(options.at("for")) : TimePoint::max();
    } else if (verb == "granted") {
      event.kind = Kind::granted;
      event.token = FencingToken(number<std::uint64_t>(words.at(1)));
      event.until = next_ + (options.contains("for") ? time(options.at("for")) : 10s);
    } else if (verb == "denied") {
      event = {.kind = Kind::denied, .word = rest};
    } else if (verb == "acquire") {
      acquires.current.attempt = number<std::uint64_t>(words.at(1));
      return;
    } else if (verb == "returns") {
      take(process, "releases");
      return take(process, "released");
    } else if (verb == "ends" || verb == "starts") {
      return note({.kind = verb == "ends" ? Kind::ended : Kind::started, .process = process});
    } else {
      event = plain.at(verb);
    }
    event.process = process;
    event.attempt = acquires.current.attempt;
    event.lock = acquires.current.lock;
    event.lock_kind = acquires.current.lock_kind;
    event.mode = acquires.current.mode;
    note(std::move(event));
  }

  void take_deed(const std::vector<std::string_view>& words, const std::string& rest, const Options& options) {
    static const std::map<std::string_view, Kind> deeds{
        {"stop", Kind::stopped}, {"resume", Kind::resumed}, {"kill", Kind::killed}, {"crash", Kind::crashed}};
    const std::string_view verb = words[0];
    if (verb == "sound") {
      note({.kind = Kind::healed, .word = std::string(everything)});
      next_ = last_ + 1min;
    } else if (verb == "heal" || verb == "strike") {
      Event event{.kind = verb == "heal" ? Kind::healed : Kind::struck,
                  .word = std::string(words.size() > 1 ? words[1] : everything)};
      if (options.contains("of")) event.lock = options.at("of");
      if (options.contains("on")) event.subject = number<int>(options.at("on"));
      const nanoseconds length = options.contains("for") ? time(options.at("for")) : 0ns;
      if (length != 0ns) event.until = next_ + length;
      note(std::move(event));
      if (length != 0ns) next_ = last_ + length;
    } else if (verb == "serve") {
      Event event = lock(words.at(1));
      event.kind = Kind::served;
      event.token = FencingToken(number<std::uint64_t>(words.at(2)));
      event.yes = words.at(3) == "taken";
      event.permits = 1;
      note(std::move(event));
    } else if (verb == "probe") {
      const bool got = words.at(2) == "got";
      note({.kind = Kind::probed, .lock = std::string(words.at(1)), .yes = got, .word = got ? "" : "timed out"});
    } else if (verb == "residue") {
      note({.kind = Kind::residue, .word = rest});
    } else {
      note({.kind = deeds.at(verb), .subject = number<int>(words.at(1)), .word = verb == "crash" ? "status 134" : ""});
    }
  }

  void note(Event event) {
    event.at = last_ = next_;
    next_ = last_ + 1ms;
    events_.push_back(std::move(event));
  }

  std::vector<Event> events_;
  std::map<int, Acquires> acquires_;
  TimePoint last_{};
  TimePoint next_{1h};
};

// The text with the alternative of that number in each pair of braces; how many alternatives there are.
std::pair<std::string, std::size_t> alternative(std::string_view text, std::size_t chosen) {
  std::string result;
  std::size_t most = 1;
  for (std::size_t begin = 0; (begin = text.find('{')) != std::string_view::npos;) {
    const std::size_t end = text.find('}');
    const auto choices = split(text.substr(begin + 1, end - begin - 1), "|");
    if (most != 1 && most != choices.size()) throw std::invalid_argument("as many alternatives everywhere, please");
    most = choices.size();
    result.append(text.substr(0, begin)).append(choices.at(chosen));
    text.remove_prefix(end + 1);
  }
  return {result.append(text), most};
}

// Each violation as "rule: what it says"; or "refused: why", where no run can have written the history.
std::vector<std::string> violations_of(const std::vector<Event>& history, const Rules& rules) {
  std::vector<std::string> all;
  try {
    for (const Violation& v : check(history, rules).violations)
      all.push_back(std::string(name_of(v.rule)) + ": " + v.what);
  } catch (const std::invalid_argument& refused) {
    all.push_back(std::string("refused: ") + refused.what());
  }
  return all;
}

// Like `expected`: rules, and what their violations say where `expected` says so.
std::string in_the_words_of(std::string_view expected, const std::vector<std::string>& violations) {
  std::set<std::string_view> in_full;
  for (const std::string_view part : split(expected, "; ")) {
    if (part.find(": ") != std::string_view::npos) in_full.insert(part.substr(0, part.find(": ")));
  }
  std::vector<std::string> seen;
  for (const std::string& violation : violations) {
    const std::string rule = violation.substr(0, violation.find(": "));
    const std::string& said = in_full.contains(rule) ? violation : rule;
    if (said != rule || seen.empty() || seen.back() != rule) seen.push_back(said);
  }
  std::string text;
  for (const std::string& each : seen) text.append(text.empty() ? "" : "; ").append(each);
  return text;
}

}  // namespace

std::vector<Event> history_of(std::string_view text) {
  return Reader().read(text);
}

TEST_P(HistoryTest, BreaksTheRulesOfItsRow) {
  const Row& row = GetParam();
  const std::size_t alternatives = alternative(row.history, 0).second;
  auto broken = split(row.broken, "|");
  if (broken.size() == 1) broken.resize(alternatives, row.broken);
  ASSERT_EQ(broken.size(), alternatives);
  for (std::size_t i = 0; i < alternatives; ++i) {
    const std::string text = alternative(row.history, i).first;
    const auto violations = violations_of(history_of(text), row.rules);
    EXPECT_EQ(in_the_words_of(broken[i], violations), broken[i]) << text;
  }
}

}  // namespace dlock::torture
