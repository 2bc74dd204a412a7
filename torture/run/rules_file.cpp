#include "torture/run/rules_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
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

}  // namespace

void save(const Rules& rules, const std::filesystem::path& file) {
  Json json;
  for (const auto& [name, member] : bounds) json[name] = (rules.*member).count();
  Json without = Json::array();
  for (const Rule rule : rules.without) without.push_back(name_of(rule));
  json["without"] = std::move(without);
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
    for (const auto& name : json.at("without")) {
      const auto* const rule = std::find_if(all_rules.begin(), all_rules.end(),
                                            [&](Rule each) { return name_of(each) == name.get<std::string>(); });
      if (rule == all_rules.end()) throw std::runtime_error("no such rule: " + name.get<std::string>());
      rules.without.insert(*rule);
    }
    return rules;
  } catch (const std::exception& e) {
    throw std::runtime_error("cannot read the rules in " + file.string() + ": " + e.what());
  }
}

}  // namespace dlock::torture
