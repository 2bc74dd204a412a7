#include <dlock/error.hpp>

#include "util/immortal.hpp"

namespace dlock {

namespace {

class Category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "dlock"; }

  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<errc>(value)) {
      case errc::timed_out:
        return "timed out waiting for the lock";
      case errc::cancelled:
        return "the wait was cancelled";
      case errc::lost:
        return "the lock was lost";
      case errc::not_owner:
        return "the lock is not ours";
      case errc::unavailable:
        return "the lock service is unavailable";
      case errc::ambiguous:
        return "the lock service did not answer; the outcome is unknown";
      case errc::access_denied:
        return "access denied";
      case errc::invalid_argument:
        return "invalid argument";
      case errc::unsupported:
        return "not supported by this backend";
      case errc::closed:
        return "the client is closed";
      case errc::protocol:
        return "unexpected data from the lock service";
    }
    return "unknown error " + std::to_string(value);
  }

  [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override {
    switch (static_cast<errc>(value)) {
      case errc::timed_out:
        return std::errc::timed_out;
      case errc::cancelled:
        return std::errc::operation_canceled;
      case errc::not_owner:
        return std::errc::operation_not_permitted;
      case errc::access_denied:
        return std::errc::permission_denied;
      case errc::invalid_argument:
        return std::errc::invalid_argument;
      case errc::unsupported:
        return std::errc::not_supported;
      case errc::protocol:
        return std::errc::protocol_error;
      case errc::lost:
      case errc::unavailable:
      case errc::ambiguous:
      case errc::closed:
        break;
    }
    return {value, *this};
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
