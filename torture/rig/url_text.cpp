#include "torture/rig/url_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>

#include "util/percent.hpp"

namespace dlock::rig {

namespace {

// Encodes what has a meaning in some part of a URL; not '/', which has none in a path or in the value of a parameter.
std::string encoded(std::string_view text) {
  return util::percent_encode(text, [](unsigned char byte) {
    return std::isalnum(byte) != 0 ||
           std::string_view("-._~/:").find(static_cast<char>(byte)) != std::string_view::npos;
  });
}

}  // namespace

UrlText::UrlText(std::string_view text) : original_(Url::parse(text)) {
  std::string_view rest = text;
  std::string_view query;
  if (const std::size_t at = rest.find('?'); at != std::string_view::npos) {
    query = rest.substr(at + 1);
    rest = rest.substr(0, at);
  }
  const std::size_t authority = original_.scheme().size() + 3;
  const std::size_t slash = std::min(rest.find('/', authority), rest.size());
  path_ = rest.substr(slash);
  rest = rest.substr(0, slash);
  const std::size_t user_end = rest.rfind('@');
  const std::size_t host = user_end == std::string_view::npos ? authority : user_end + 1;
  start_ = rest.substr(0, host);
  hosts_ = rest.substr(host);
  for (const auto& [key, value] : original_.parameters()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    parameters_.push_back({.key = key, .written = std::string(query.substr(0, end))});
    query.remove_prefix(std::min(end + 1, query.size()));
  }
}

std::string UrlText::text() const {
  std::string out = start_ + hosts_ + path_;
  char separator = '?';
  for (const Parameter& each : parameters_) out += std::exchange(separator, '&') + each.written;
  return out;
}

std::optional<std::string> UrlText::parameter(std::string_view key) const {
  Url now = Url::parse(text());
  return now.take(key);
}

std::optional<std::string> UrlText::secret(const std::string& key) const {
  const auto file = parameter(key + "_file");
  if (!file) return parameter(key);
  std::ifstream content(*file);
  std::string line;
  std::getline(content, line);
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

std::optional<std::string> UrlText::password() const {
  return original_.password() ? original_.password() : secret("password");
}

void UrlText::set(std::string_view key, std::string_view value) {
  Parameter parameter{.key = std::string(key), .written = encoded(key) + "=" + encoded(value)};
  const auto found =
      std::find_if(parameters_.begin(), parameters_.end(), [&](const auto& each) { return each.key == key; });
  if (found != parameters_.end()) {
    *found = std::move(parameter);
  } else {
    parameters_.push_back(std::move(parameter));
  }
}

void UrlText::remove(std::string_view key) {
  std::erase_if(parameters_, [&](const auto& each) { return each.key == key; });
}

std::vector<HostPort> UrlText::hosts(const HostPort& otherwise) const {
  const Url now = Url::parse(text());
  std::vector<HostPort> hosts;
  for (const Url::Host& each : now.hosts()) {
    hosts.push_back({.name = each.name, .port = each.port.value_or(otherwise.port)});
  }
  if (hosts.empty()) hosts.push_back(otherwise);
  return hosts;
}

void UrlText::set_path(std::string_view path) {
  path_ = encoded(path);
}

}  // namespace dlock::rig
