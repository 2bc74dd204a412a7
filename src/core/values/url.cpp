#include <dlock/spi/url.hpp>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include <dlock/error.hpp>

#include "util/names.hpp"
#include "util/number.hpp"
#include "util/percent.hpp"
#include "util/wipe.hpp"

// Split by hand, because a list of hosts with ports (zookeeper://a:1,b:2) is no authority of RFC 3986, and because
// every error must name the part that is wrong without showing a password.

namespace dlock {

namespace {

constexpr std::size_t max_url_bytes = 65536;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(errc::invalid_argument, "URL: " + why);
}

[[noreturn]] void refuse_value(std::string_view key, std::string_view value, const std::string& expected) {
  refuse("parameter \"" + std::string(key) + "\": " + util::quoted(value) + " is not " + expected);
}

bool is_control(unsigned char c) {
  return c < 0x20 || c == 0x7f;
}

// May be in the name of a parameter, or of the zone of an IPv6 address.
bool is_plain(unsigned char c) {
  return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
}

std::string decode(std::string_view text, const std::string& part) {
  auto decoded = util::percent_decode(text);
  if (!decoded) refuse(part + " has a '%' without two hexadecimal digits");
  if (decoded->find('\0') != std::string::npos) refuse(part + " has a NUL");
  return *std::move(decoded);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool may_be_secret(std::string_view key) {
  const std::string lower = lower_case(key);
  if (lower.ends_with("file")) return false;  // its name is not secret
  return lower == "auth" || lower.find("pass") != std::string::npos || lower.find("secret") != std::string::npos;
}

// parse() refuses an '@' in the path of a URL without a user, and the user may be left out of this text.
std::string without_at_signs(std::string_view path) {
  std::string out;
  for (const char c : path) out += c == '@' ? std::string("%40") : std::string(1, c);
  return out;
}

// Cuts `text` at the first `delimiter` and returns what follows it.
std::optional<std::string_view> cut(std::string_view& text, char delimiter) {
  const std::size_t at = text.find(delimiter);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + 1);
  text = text.substr(0, at);
  return rest;
}

// Text without "://". Shows only what is written like a scheme: the rest may be a password.
[[noreturn]] void refuse_without_scheme(std::string_view text) {
  const std::string expected = "; expected something like file:///run/lock/myapp or redis://host";
  const std::size_t end = text.find_first_of(":/");
  const std::string scheme = lower_case(text.substr(0, end));
  if (end != std::string_view::npos && util::is_scheme(scheme)) {
    const std::string_view rest = text.substr(end);
    if (rest.starts_with("//")) refuse("':' is missing between \"" + scheme + R"(" and "//")" + expected);
    const std::size_t port_end = std::min(rest.find_first_not_of("0123456789", 1), rest.size());
    const bool has_port = port_end > 1 && (port_end == rest.size() ||
                                           std::string_view("/,?").find(rest[port_end]) != std::string_view::npos);
    if (rest.front() == ':' && !has_port) refuse("\"" + scheme + R"(:" is not followed by "//")" + expected);
  }
  refuse("no scheme" + expected);
}

std::string parse_scheme(std::string_view text) {
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos) refuse_without_scheme(text);
  std::string scheme = lower_case(text.substr(0, colon));
  if (scheme.empty()) refuse("no scheme before \"://\"");
  if (!util::is_scheme(scheme)) refuse("malformed scheme");  // not quoted: it could be anything, a password included
  return scheme;
}

std::uint16_t parse_port(std::string_view text, std::string_view host) {
  const auto port = util::parse_number<std::uint16_t>(text);
  if (!port || *port == 0) {
    // Not shown: in a URL that lacks its '@', or has an unescaped '/' in the password, it is the password.
    refuse("the port of host " + util::quoted(host) + " is not a number from 1 to 65535");
  }
  return *port;
}

// The key of a parameter as a message may show it; in a malformed URL it may be anything, a password included.
std::string shown_key(std::string_view key) {
  return !key.empty() && std::ranges::all_of(key, is_plain) ? "parameter " + util::quoted(key)
                                                            : std::string("a parameter");
}

// "address" or "address%25zone" (RFC 6874).
std::string parse_ipv6(std::string_view text) {
  std::string name = decode(text, "IPv6 address");
  const std::size_t zone = std::min(name.find('%'), name.size());
  const bool good_address = zone != 0 && name.find_first_not_of("0123456789abcdefABCDEF:.") >= zone;
  const bool good_zone =
      zone == name.size() || (zone + 1 < name.size() && std::ranges::all_of(name.substr(zone + 1), is_plain));
  if (!good_address || !good_zone) refuse("malformed IPv6 address " + util::quoted(name));
  return name;
}

Url::Host parse_host(std::string_view text) {
  if (text.empty()) refuse("empty host in the list of hosts");
  Url::Host host;
  std::optional<std::string_view> port;
  if (text.front() == '[') {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) refuse("IPv6 address without closing ']'");
    host.name = parse_ipv6(text.substr(1, close - 1));
    std::string_view rest = text.substr(close + 1);
    port = cut(rest, ':');
    if (!rest.empty()) refuse("unexpected text after ']'");
  } else {
    if (std::ranges::count(text, ':') > 1) refuse("IPv6 addresses are written in brackets, [::1]");
    port = cut(text, ':');
    host.name = decode(text, "host");
    if (host.name.empty()) refuse("empty host before the port");
    if (std::ranges::any_of(host.name, is_control)) refuse("host has a control character");
  }
  if (port) host.port = parse_port(*port, host.name);
  return host;
}

std::vector<Url::Host> parse_hosts(std::string_view text) {
  std::vector<Url::Host> hosts;
  if (text.empty()) return hosts;
  for (;;) {
    const auto rest = cut(text, ',');
    hosts.push_back(parse_host(text));
    if (!rest) return hosts;
    text = *rest;
  }
}

}  // namespace

Url Url::parse(std::string_view text) {
  if (text.size() > max_url_bytes) refuse("longer than 64 KiB");
  if (std::ranges::any_of(text, is_control)) refuse("has a control character");
  if (text.find('#') != std::string_view::npos) refuse("fragments (#...) are not supported; write '#' as %23");

  Url url;
  url.scheme_ = parse_scheme(text);
  std::string_view rest = text.substr(url.scheme_.size() + 3);
  const auto query = cut(rest, '?');
  const std::size_t slash = rest.find('/');
  std::string_view authority = rest.substr(0, slash);
  const std::string_view path = slash == std::string_view::npos ? std::string_view() : rest.substr(slash);

  const std::string_view whole_authority = authority;
  std::string_view user_text;
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    std::string_view user = authority.substr(0, at);
    authority = authority.substr(at + 1);
    const auto password = cut(user, ':');
    user_text = user;
    url.user_ = decode(user, "user");
    if (password) url.password_ = decode(*password, "password");
  }
  if (!authority.empty() && !url.user_ && path.find('@') != std::string_view::npos) {
    // Most likely an unescaped '/' in a password, which would then be shown as part of the path.
    refuse("the path has an '@'; write it as %40, and a '/' in a password as %2F");
  }
  url.hosts_ = parse_hosts(authority);
  url.path_ = decode(path, "path");

  const std::string start = url.scheme_ + "://";
  const std::string hosts(authority);
  const bool has_user = authority.size() != whole_authority.size();
  url.redacted_ =
      start + (has_user ? std::string(user_text) + (url.password_ ? ":***@" : "@") : "") + hosts + std::string(path);
  url.without_secrets_ =
      start + (has_user && !user_text.empty() ? std::string(user_text) + "@" : "") + hosts + without_at_signs(path);
  if (query) url.parse_query(*query);
  return url;
}

Url::~Url() {
  if (password_) util::wipe(*password_);
  for (auto& parameter : parameters_) util::wipe(parameter.second);
}

void Url::parse_query(std::string_view query) {
  parameters_.reserve(static_cast<std::size_t>(std::count(query.begin(), query.end(), '&')) +
                      1);  // moving leaves copies
  char shown_separator = '?';
  char kept_separator = '?';
  while (!query.empty()) {
    const std::string_view rest = cut(query, '&').value_or(std::string_view());
    const std::string_view raw = query;
    const auto raw_value = cut(query, '=');
    std::string key = decode(query, "a parameter's name");
    if (key.empty() || !raw_value) refuse(shown_key(key) + " is not of the form key=value");
    std::string value = decode(*raw_value, shown_key(key));
    const auto same_key = [&](const auto& parameter) { return parameter.first == key; };
    if (std::any_of(parameters_.begin(), parameters_.end(), same_key)) {
      refuse(shown_key(key) + " is given twice");
    }
    const bool secret = may_be_secret(key);
    redacted_ += std::exchange(shown_separator, '&') + (secret ? std::string(query) + "=***" : std::string(raw));
    if (!secret) without_secrets_ += std::exchange(kept_separator, '&') + std::string(raw);
    parameters_.emplace_back(std::move(key), std::move(value));
    query = rest;
  }
}

std::optional<std::string> Url::take(std::string_view key) {
  known_.emplace_back(key);
  const auto found = std::find_if(parameters_.begin(), parameters_.end(),
                                  [&](const auto& parameter) { return parameter.first == key; });
  if (found == parameters_.end()) return std::nullopt;
  // By way of the end, because erasing would move those behind it, and moving leaves copies of short values.
  std::rotate(found, found + 1, parameters_.end());
  std::string value = std::move(parameters_.back().second);
  util::wipe(parameters_.back().second);
  parameters_.pop_back();
  return value;
}

std::optional<Duration> Url::take_duration(std::string_view key) {
  const auto value = take(key);
  if (!value) return std::nullopt;
  if (const auto duration = parse_duration(*value)) return duration;
  refuse_value(key, *value, "a duration such as 250ms or 30s");
}

std::optional<std::uint32_t> Url::take_number(std::string_view key, std::uint32_t min, std::uint32_t max) {
  const auto text = take(key);
  if (!text) return std::nullopt;
  const auto value = util::parse_number<std::uint32_t>(*text);
  if (value && *value >= min && *value <= max) return value;
  refuse_value(key, *text, "a number from " + std::to_string(min) + " to " + std::to_string(max));
}

std::optional<std::size_t> Url::take_word(std::string_view key, const std::vector<std::string_view>& words) {
  const auto value = take(key);
  if (!value) return std::nullopt;
  const auto found = std::find(words.begin(), words.end(), *value);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string listed;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) listed += i + 1 < words.size() ? ", " : " or ";
    listed += words[i];
  }
  refuse("parameter \"" + std::string(key) + "\" must be " + listed + ", not " + util::quoted(*value));
}

void Url::require_no_parameters() const {
  if (parameters_.empty()) return;
  std::string listed;
  for (const std::string& key : std::set<std::string>(known_.begin(), known_.end())) {
    listed += (listed.empty() ? "; it takes " : ", ") + key;
  }
  refuse("unknown parameter " + util::quoted(parameters_.front().first) + " for scheme \"" + scheme_ + "\"" + listed);
}

}  // namespace dlock
