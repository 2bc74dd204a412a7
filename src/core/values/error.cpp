#include <dlock/error.hpp>

#include <algorithm>
#include <array>
#include <optional>

#include "util/immortal.hpp"

namespace dlock {

namespace {

struct Meaning {
  errc code;
  const char* message;
  std::optional<std::errc> condition = std::nullopt;  // of the standard library, if it has one for this
};

constexpr std::array meanings{
    Meaning{errc::timed_out, "timed out waiting for the lock", std::errc::timed_out},
    Meaning{errc::cancelled, "the wait was cancelled", std::errc::operation_canceled},
    Meaning{errc::lost, "the lock was lost"},
    Meaning{errc::not_owner, "the lock is not ours", std::errc::operation_not_permitted},
    Meaning{errc::unavailable, "the lock service is unavailable"},
    Meaning{errc::ambiguous, "the lock service did not answer; the outcome is unknown"},
    Meaning{errc::access_denied, "access denied", std::errc::permission_denied},
    Meaning{errc::invalid_argument, "invalid argument", std::errc::invalid_argument},
    Meaning{errc::unsupported, "not supported by this backend", std::errc::not_supported},
    Meaning{errc::closed, "the client is closed"},
    Meaning{errc::protocol, "unexpected data from the lock service", std::errc::protocol_error},
};

// nullptr for a value that is no errc.
const Meaning* meaning_of(int value) noexcept {
  const auto* const found = std::ranges::find(meanings, static_cast<errc>(value), &Meaning::code);
  return found == meanings.end() ? nullptr : found;
}

class Category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "dlock"; }

  [[nodiscard]] std::string message(int value) const override {
    const Meaning* const meaning = meaning_of(value);
    return meaning != nullptr ? meaning->message : "unknown error " + std::to_string(value);
  }

  [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override {
    const Meaning* const meaning = meaning_of(value);
    if (meaning == nullptr || !meaning->condition) return {value, *this};
    return *meaning->condition;
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const util::Immortal<Category> category;
  return *category;
}

std::error_code make_error_code(errc e) noexcept {
  return {static_cast<int>(e), error_category()};
}

namespace {

// std::system_error appends the code's message; an empty text would leave a stray ": ".
std::system_error base_of(std::error_code code, const std::string& detail) {
  return detail.empty() ? std::system_error(code) : std::system_error(code, detail);
}

}  // namespace

Error::Error(errc e, const std::string& detail) : Error(Failure{e, detail}) {}

Error::Error(const Failure& failure)
    : std::system_error(base_of(failure.code, failure.detail)), detail_(failure.detail) {}

}  // namespace dlock
