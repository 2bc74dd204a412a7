#include "torture/run/rules_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace dlock::torture {

namespace {

using Json = nlohmann::ordered_json;
using std::chrono::nanoseconds;

constexpr std::array bounds{
    std::pair{"slack_ns", &Rules::slack},           std::pair{"release_ns", &Rules::release},
    std::pair{"loss_slack_ns", &Rules::loss_slack}, std::pair{"recovery_ns", &Rules::recovery},
    std::pair{"settled_ns", &Rules::settled},       std::pair{"hand_over_ns", &Rules::hand_over}};

Json names_of(const std::set<Rule>& rules) {
  Json names = Json::array();
  for (const Rule rule : rules) names.push_back(name_of(rule));
  return names;
}

std::set<Rule> rules_named(const Json& names) {
  std::set<Rule> rules;
  for (const auto& name : names) {
    const auto* const rule = std::find_if(all_rules.begin(), all_rules.end(),
                                          [&](Rule each) { return name_of(each) == name.get<std::string>(); });
    if (rule == all_rules.end()) throw std::runtime_error("no such rule: " + name.get<std::string>());
    rules.insert(*rule);
  }
  return rules;
}

Json json_of(const Hole& hole) {
  return {{"rules", names_of(hole.rules)},
          {"strikes", hole.strikes},
          {"faults", hole.faults},
          {"belief_ns", hole.belief.count()},
          {"told_at_once", hole.told_at_once}};
}

Hole hole_of(const Json& json) {
  return {.rules = rules_named(json.at("rules")),
          .strikes = json.at("strikes").get<std::set<std::string>>(),
          .faults = json.at("faults").get<std::set<std::string>>(),
          .belief = nanoseconds(json.at("belief_ns").get<std::int64_t>()),
          .told_at_once = json.at("told_at_once").get<bool>()};
}

}  // namespace

void save(const Rules& rules, const std::filesystem::path& file) {
  Json json;
  for (const auto& [name, member] : bounds) json[name] = (rules.*member).count();
  json["without"] = names_of(rules.without);
  if (!rules.hole.rules.empty()) json["hole"] = json_of(rules.hole);
  std::ofstream out(file);
  out << json.dump(2) << '\n';
  if (!out.flush()) throw std::system_error(errno, std::generic_category(), file.string());
}

Rules load_rules(const std::filesystem::path& file) {
  try {
    std::ifstream in(file);
    const Json json = Json::parse(in);
    Rules rules;
    for (const auto& [name, member] : bounds) rules.*member = nanoseconds(json.at(name).get<std::int64_t>());
    rules.without = rules_named(json.at("without"));
    if (json.contains("hole")) rules.hole = hole_of(json.at("hole"));
    return rules;
  } catch (const std::exception& e) {
    throw std::runtime_error("cannot read the rules in " + file.string() + ": " + e.what());
  }
}

}  // namespace dlock::torture
