#include "tests/unit/bench/report/schema_check.hpp"

#include <algorithm>

namespace dlock::bench {

namespace {

using Json = nlohmann::json;

class Checker {
 public:
  explicit Checker(const Json& root) : root_(root) {}

  std::string check(const Json& value, const Json& schema, const std::string& path) {
    for (const auto& [keyword, rule] : schema.items()) {
      const std::string wrong = check_keyword(keyword, rule, value, schema, path);
      if (!wrong.empty()) return wrong;
    }
    return {};
  }

 private:
  std::string check_keyword(const std::string& keyword, const Json& rule, const Json& value, const Json& schema,
                            const std::string& path) {
    if (keyword == "$ref") return check(value, root_.at(Json::json_pointer(rule.get<std::string>().substr(1))), path);
    if (keyword == "type") return has_type(value, rule) ? "" : path + " is no " + rule.dump();
    if (keyword == "const") return value == rule ? "" : path + " is not " + rule.dump();
    if (keyword == "enum") {
      return std::find(rule.begin(), rule.end(), value) != rule.end() ? "" : path + " is none of " + rule.dump();
    }
    if (keyword == "minItems") return value.size() >= rule ? "" : path + " is too short";
    if (keyword == "maxItems") return value.size() <= rule ? "" : path + " is too long";
    if (keyword == "required") return check_required(rule, value, path);
    if (keyword == "properties" || keyword == "items") return check_parts(keyword, rule, value, path);
    if (keyword == "additionalProperties") return check_others(rule, value, schema, path);
    const bool known = keyword == "description" || keyword == "title" || keyword == "$schema" || keyword == "$defs";
    return known ? "" : "unknown keyword " + keyword;
  }

  static bool has_type(const Json& value, const Json& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "number") return value.is_number();
    return type == "boolean" && value.is_boolean();
  }

  static std::string check_required(const Json& names, const Json& value, const std::string& path) {
    for (const auto& name : names) {
      if (!value.contains(name.get<std::string>())) return path + " has no " + name.dump();
    }
    return {};
  }

  std::string check_parts(const std::string& keyword, const Json& rule, const Json& value, const std::string& path) {
    for (const auto& [name, part] : value.items()) {
      const bool has_rule = keyword == "items" || rule.contains(name);
      if (!has_rule) continue;
      const std::string wrong = check(part, keyword == "items" ? rule : rule.at(name), path + "/" + name);
      if (!wrong.empty()) return wrong;
    }
    return {};
  }

  std::string check_others(const Json& rule, const Json& value, const Json& schema, const std::string& path) {
    for (const auto& [name, part] : value.items()) {
      if (schema.contains("properties") && schema.at("properties").contains(name)) continue;
      if (rule == false) return path + " has an unknown \"" + name + "\"";
      const std::string wrong = check(part, rule, path + "/" + name);
      if (!wrong.empty()) return wrong;
    }
    return {};
  }

  const Json& root_;
};

}  // namespace

std::string schema_violation(const nlohmann::json& value, const nlohmann::json& schema) {
  return Checker(schema).check(value, schema, "");
}

}  // namespace dlock::bench
