#include "backends/common/host.hpp"

#include <algorithm>
#include <cctype>

#include <dlock/error.hpp>

#include "util/names.hpp"

namespace dlock::common {

bool Host::is_this_machine() const noexcept {
  const bool loopback = name.starts_with("127.") && name.find_first_not_of("0123456789.") == std::string::npos;
  return loopback || name == "localhost" || name == "::1" || is_socket_directory();
}

std::string Host::to_string() const {
  const bool v6 = !is_socket_directory() && name.find(':') != std::string::npos;
  return (v6 ? "[" + name + "]" : name) + ":" + std::to_string(port);
}

// Client libraries are handed lists of hosts as one text, with "," and "/" between its parts.
bool is_host_name(const std::string& name) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':' || c == '%';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), allowed);
}

void check_host_name(const std::string& name) {
  if (!is_host_name(name)) throw Error(errc::invalid_argument, "host: " + util::quoted(name) + " is not a host name");
}

std::vector<Host> hosts_of(const Url& url, std::uint16_t default_port, std::size_t most,
                           void (*check)(const std::string& name)) {
  std::vector<Host> hosts;
  for (const Url::Host& host : url.hosts()) {
    check(host.name);
    hosts.push_back({.name = host.name, .port = host.port.value_or(default_port)});
  }
  if (hosts.size() > most) {
    throw Error(errc::invalid_argument, "host: more than " + std::to_string(most) + " in the list");
  }
  if (hosts.empty()) hosts.push_back({.name = "localhost", .port = default_port});
  return hosts;
}

std::string to_string(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts) text += (text.empty() ? "" : ",") + host.to_string();
  return text;
}

std::optional<std::string> take_either(Url& url, std::string_view key, std::optional<std::string> in_front) {
  if (in_front && in_front->empty()) in_front.reset();
  auto parameter = url.take(key);
  if (!parameter) return in_front;
  if (in_front) throw Error(errc::invalid_argument, std::string(key) + ": given twice, before and after the '?'");
  if (parameter->empty()) throw Error(errc::invalid_argument, std::string(key) + ": is empty");
  return parameter;
}

}  // namespace dlock::common
