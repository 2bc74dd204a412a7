// Arbitrary text as a duration, and as a URL: taken apart or refused, never a crash. What is printed of one can be read
// again and says the same. The password, which is known here, is in nothing that may be shown.
#include <optional>
#include <string>
#include <string_view>

#include <dlock/error.hpp>
#include <dlock/spi/url.hpp>

#include "tests/fuzz/checks.hpp"
#include "util/duration_text.hpp"

namespace {

using dlock::Url;
using dlock::fuzz::require;

constexpr std::string_view secret = "S3cr3t%2FW0rd";
// What must not be seen, whether decoded or not.
constexpr std::string_view part_of_secret = "S3cr3t";

void require_hidden(std::string_view text, std::string_view hidden) {
  require(text.find(hidden) == std::string_view::npos);
}

// Parsed, or nullopt; the refusal shows nothing of what is to be hidden.
std::optional<Url> parse(const std::string& text, std::string_view hidden) {
  try {
    return Url::parse(text);
  } catch (const dlock::Error& error) {
    require(error.code() == dlock::errc::invalid_argument);
    if (!hidden.empty()) require_hidden(error.what(), hidden);
    return std::nullopt;
  }
}

bool same_service(const Url& a, const Url& b) {
  if (a.scheme() != b.scheme() || a.path() != b.path() || a.hosts().size() != b.hosts().size()) return false;
  for (std::size_t i = 0; i < a.hosts().size(); ++i) {
    if (a.hosts()[i].name != b.hosts()[i].name || a.hosts()[i].port != b.hosts()[i].port) return false;
  }
  // A user that is empty is as good as none.
  return a.user().value_or("") == b.user().value_or("");
}

void require_prints_itself(const Url& url) {
  const auto redacted = parse(url.redacted(), {});
  require(redacted && same_service(url, *redacted) && redacted->redacted() == url.redacted());
  require(redacted->parameters().size() == url.parameters().size());
  const auto harmless = parse(url.without_secrets(), {});
  require(harmless && same_service(url, *harmless) && harmless->without_secrets() == url.without_secrets());
  require(!harmless->password());
}

// Taking options is the other thing that quotes the text.
void take_all(Url url) {
  const auto parameters = url.parameters();
  for (const auto& [key, value] : parameters) {
    try {
      (void)url.take_duration(key);
    } catch (const dlock::Error&) {
      require(!dlock::parse_duration(value));
    }
  }
  url.require_no_parameters();
}

// Refused, or one that is not negative and is read again as it is printed.
void check_duration(std::string_view text) {
  const auto duration = dlock::parse_duration(text);
  require(!duration || *duration >= dlock::Duration());
  require(!duration || dlock::parse_duration(dlock::util::to_text(duration->value())) == duration);
}

void check(const std::string& text, std::string_view hidden) {
  const auto url = parse(text, hidden);
  if (!url) return;
  if (!hidden.empty()) {
    require(url->password().has_value());
    require_hidden(url->redacted(), hidden);
    require_hidden(url->without_secrets(), hidden);
  }
  require_prints_itself(*url);
  take_all(*url);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = dlock::fuzz::as_text(data, size);
  check_duration(text);
  check(std::string(text), {});
  if (text.find(part_of_secret) != std::string_view::npos) return 0;
  // With a password in the place where it belongs, and the text around it.
  std::string_view rest = text;
  const std::string_view scheme = dlock::fuzz::take_line(rest);
  const std::string_view user = dlock::fuzz::take_line(rest);
  if (scheme.find_first_of("/?#@") != std::string_view::npos || user.find_first_of("/?#@") != std::string_view::npos) {
    return 0;  // then it stands elsewhere
  }
  check(std::string(scheme) + "://" + std::string(user) + ":" + std::string(secret) + "@" + std::string(rest),
        part_of_secret);
  return 0;
}
