// A lock service's URL that can be changed in parts; the rest stays as it was written.
//
//   UrlText url("redis://:secret@db1/3?lease=10s");
//   url.set("strategy", "poll");
//   url.set_hosts("127.0.0.1:4711");
//   url.text()                          // redis://:secret@127.0.0.1:4711/3?lease=10s&strategy=poll
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/spi/url.hpp>

namespace dlock::rig {

struct HostPort {
  std::string name;  // an IPv6 address without brackets
  std::uint16_t port;
};

class UrlText {
 public:
  // Throws Error(invalid_argument), without the password.
  explicit UrlText(std::string_view text);

  // As given, without the changes.
  [[nodiscard]] const Url& original() const noexcept { return original_; }
  [[nodiscard]] std::string text() const;
  // For display: without password.
  [[nodiscard]] std::string shown() const { return Url::parse(text()).redacted(); }

  // The parameter's value, decoded.
  [[nodiscard]] std::optional<std::string> parameter(std::string_view key) const;
  // The parameter's value, or the first line of the file that the parameter KEY_file names.
  [[nodiscard]] std::optional<std::string> secret(const std::string& key) const;
  [[nodiscard]] std::optional<std::string> password() const;
  void set(std::string_view key, std::string_view value);
  // No effect if it is missing.
  void remove(std::string_view key);

  // otherwise: if it has no hosts; its port is for hosts without one.
  [[nodiscard]] std::vector<HostPort> hosts(const HostPort& otherwise) const;
  // "name:port,name:port"; user and password stay.
  void set_hosts(std::string hosts) { hosts_ = std::move(hosts); }
  void set_path(std::string_view path);

 private:
  struct Parameter {
    std::string key;
    std::string written;  // "key=value"
  };

  Url original_;
  std::string start_;  // "scheme://user:password@"
  std::string hosts_;
  std::string path_;
  std::vector<Parameter> parameters_;
};

}  // namespace dlock::rig
