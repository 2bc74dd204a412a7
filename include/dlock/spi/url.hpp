// A backend's URL, taken apart. For backend authors.
//
//   scheme://[user[:password]@]host[:port][,host[:port]...][/path][?key=value[&key=value...]]
//
// Plain data; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/duration.hpp>

namespace dlock {

// The URL that connect() was given, in its parts.
class Url {
 public:
  // One host of the list.
  struct Host {
    std::string name;  // an IPv6 address is without its brackets
    std::optional<std::uint16_t> port;
  };

  // Throws Error(invalid_argument) naming the part that is wrong: a missing or malformed scheme, a broken percent
  // escape, a port outside 1..65535, an empty host in a list, a parameter given twice, a fragment, a control
  // character, more than 64 KiB. The text never contains the password.
  [[nodiscard]] static Url parse(std::string_view text);

  Url() = default;
  Url(const Url&) = default;
  Url(Url&&) noexcept = default;
  Url& operator=(const Url&) = default;
  Url& operator=(Url&&) noexcept = default;
  // Overwrites the password and the values of the parameters, which may be secret.
  ~Url();

  [[nodiscard]] const std::string& scheme() const noexcept { return scheme_; }
  [[nodiscard]] const std::optional<std::string>& user() const noexcept { return user_; }
  [[nodiscard]] const std::optional<std::string>& password() const noexcept { return password_; }
  [[nodiscard]] const std::vector<Host>& hosts() const noexcept { return hosts_; }
  // Decoded, with its leading slash; may be empty.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  // Parameters in the order given, decoded.
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& parameters() const noexcept {
    return parameters_;
  }

  // Removes a parameter and returns its value. A backend takes the parameters that it knows and then calls
  // require_no_parameters(), so that it never ignores an option silently.
  [[nodiscard]] std::optional<std::string> take(std::string_view key);
  // The same for a duration such as "250ms", "30s", "5m"; throws Error(invalid_argument) that names the key if the
  // value is not a duration.
  [[nodiscard]] std::optional<Duration> take_duration(std::string_view key);
  // The same for a whole number from min to max.
  [[nodiscard]] std::optional<std::uint32_t> take_number(std::string_view key, std::uint32_t min, std::uint32_t max);
  // The same for one of several words; `otherwise` if the parameter is missing.
  //
  //   url.take_choice<Mode>("mode", {{"fast", Mode::fast}, {"safe", Mode::safe}}, Mode::safe)
  template <class T>
  [[nodiscard]] T take_choice(std::string_view key, std::initializer_list<std::pair<std::string_view, T>> choices,
                              T otherwise) {
    std::vector<std::string_view> words;
    for (const auto& choice : choices) words.push_back(choice.first);
    const auto chosen = take_word(key, words);
    return chosen ? (choices.begin() + static_cast<std::ptrdiff_t>(*chosen))->second : otherwise;
  }
  // Throws Error(invalid_argument) that names the first parameter that was not taken, and the known ones.
  void require_no_parameters() const;

  // The URL in a form that is safe to show: "***" replaces the password, and the value of every parameter that may be
  // secret (the key is "auth", or contains "pass" or "secret", and does not end with "file").
  [[nodiscard]] const std::string& redacted() const noexcept { return redacted_; }
  // The URL without those parts, in a form that is safe for the environment.
  [[nodiscard]] const std::string& without_secrets() const noexcept { return without_secrets_; }

 private:
  void parse_query(std::string_view query);
  [[nodiscard]] std::optional<std::size_t> take_word(std::string_view key, const std::vector<std::string_view>& words);

  std::string scheme_;
  std::optional<std::string> user_;
  std::optional<std::string> password_;
  std::vector<Host> hosts_;
  std::string path_;
  std::vector<std::pair<std::string, std::string>> parameters_;
  std::vector<std::string> known_;  // the keys that were asked for
  std::string redacted_;
  std::string without_secrets_;
};

// "250ms", "1.5s", "2m", "12h", "1d", "0", "forever"/"inf". A unit is required except for 0; nullopt for anything
// else, negative values and overflow among them.
[[nodiscard]] std::optional<Duration> parse_duration(std::string_view text) noexcept;

}  // namespace dlock
