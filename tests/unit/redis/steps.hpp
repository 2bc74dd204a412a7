// Scripts of steps, which tests carry out: "verb word the rest => what is expected", separated by ';' or line ends.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "fake_server.hpp"
#include "tests/support/manual_engine.hpp"

namespace dlock::redis {

struct StepScript {
  const char* name;
  std::string steps;

  friend void PrintTo(const StepScript& script, std::ostream* out) { *out << script.name; }
};
inline std::string name_of_script(const testing::TestParamInfo<StepScript>& row) {
  return row.param.name;
}

struct Step {
  std::string text, verb, first, rest, expected;
};

inline std::vector<std::string> split(const std::string& text, char by = ',') {
  std::vector<std::string> out;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, by);) out.push_back(part);
  return out;
}

inline std::vector<Step> steps_of(const std::string& script) {
  std::vector<Step> out;
  for (const std::string& line : split(script, '\n')) {
    for (const std::string& text : split(line, ';')) {
      Step step;
      step.text = text;
      std::istringstream words(text);
      words >> step.verb >> step.first >> std::ws;
      std::getline(words, step.rest);
      const std::size_t arrow = text.find("=> ");
      if (arrow != std::string::npos) step.expected = text.substr(arrow + 3);
      if (!step.verb.empty()) out.push_back(step);
    }
  }
  return out;
}

// "500ms", "10s", "1min".
inline std::chrono::nanoseconds time_in(const std::string& text) {
  const auto number = std::stoll(text);
  if (text.ends_with("ms")) return std::chrono::milliseconds(number);
  if (text.ends_with("min")) return std::chrono::minutes(number);
  return std::chrono::seconds(number);
}

// "3", "2..4" or "2..".
inline bool matches(const std::string& expected, std::int64_t number) {
  const std::size_t dots = expected.find("..");
  const std::string most = dots == std::string::npos ? expected : expected.substr(dots + 2);
  return number >= std::stoll(expected) && (most.empty() || number <= std::stoll(most));
}

inline std::string joined(const std::vector<std::string>& words, const std::string& by) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : by) + word;
  return out;
}

// Carries out steps by their verbs.
class StepRunner {
 protected:
  using Verb = std::function<void(const Step&)>;

  StepRunner() = default;

  // Expects that text.
  template <class F>
  static Verb text_of(F f) {
    return [f = std::move(f)](const Step& step) { EXPECT_EQ(f(), step.expected); };
  }
  // Expects "yes" or "no".
  template <class F>
  static Verb whether(F f) {
    return text_of([f = std::move(f)] { return std::string(f() ? "yes" : "no"); });
  }
  // Expects that number.
  template <class F>
  static Verb number_of(F f) {
    return [f = std::move(f)](const Step& step) {
      const auto number = static_cast<std::int64_t>(f());
      EXPECT_TRUE(matches(step.expected, number)) << number;
    };
  }

  void carry_out(const std::string& script) {
    for (const Step& step : steps_of(script)) {
      SCOPED_TRACE(step.text);
      verbs.at(step.verb.find('=') == std::string::npos ? step.verb : "=")(step);
    }
  }

  std::map<std::string, Verb> verbs;
};

// Steps about nodes that have names, each with a FakeServer `server`. NAMES: "a", "a,b", "all". N: a number, M..N or
// M..
//
//   accept, refuse, ignore or cut NAMES: connections
//   wait TIME; count: numbers begin anew
//   dialled NAMES => N, and connected NAMES => N, which is counted from the beginning
template <class Node>
class NodeScript : protected StepRunner {
 protected:
  using Number = std::function<std::int64_t(Node&)>;
  using Dialling = FakeServer::Dialling;

  NodeScript(test::ManualEngine& engine, std::vector<std::string> all) : all_(std::move(all)) {
    verbs = {
        {"wait", [&engine](const Step& step) { engine.advance(time_in(step.first)); }},
        {"accept", each([](Node& node, const std::string&) { node.server.dialling = Dialling::accept; })},
        {"refuse", each([](Node& node, const std::string&) { node.server.dialling = Dialling::refuse; })},
        {"ignore", each([](Node& node, const std::string&) { node.server.dialling = Dialling::silence; })},
        {"cut", each([](Node& node, const std::string&) { node.server.cut(); })},
        {"connected", sum_of([](Node& node) { return static_cast<std::int64_t>(node.server.connections.size()); })},
        {"count",
         [this](const Step&) {
           for (const auto& [verb, number] : counted_) {
             for (const std::string& name : all_) before_[verb + " " + name] = number(named(name));
           }
         }},
    };
    count("dialled", [](Node& node) -> std::int64_t { return node.server.dialled; });
  }
  virtual ~NodeScript() = default;
  virtual Node& named(const std::string& name) = 0;

  [[nodiscard]] std::vector<std::string> names_in(const std::string& text) const {
    return text == "all" || text == "=>" ? all_ : split(text);
  }
  // Does that with each of the names, and the words behind them.
  Verb each(std::function<void(Node&, const std::string& words)> f) {
    return [this, f = std::move(f)](const Step& step) {
      for (const std::string& name : names_in(step.first)) f(named(name), step.rest);
    };
  }
  // Expects that number of all of the names together.
  Verb sum_of(Number f) {
    return [this, f = std::move(f)](const Step& step) {
      std::int64_t sum = 0;
      for (const std::string& name : names_in(step.first)) sum += f(named(name)) - before_[step.verb + " " + name];
      EXPECT_TRUE(matches(step.expected, sum)) << sum;
    };
  }
  // A verb for a number since "count".
  void count(const std::string& verb, const Number& f) {
    verbs[verb] = sum_of(f);
    counted_[verb] = f;
  }

 private:
  std::vector<std::string> all_;
  std::map<std::string, Number> counted_;
  std::map<std::string, std::int64_t> before_;
};

}  // namespace dlock::redis
