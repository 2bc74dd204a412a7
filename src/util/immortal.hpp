// Values that are never destroyed: clients in static storage use the library until the very end of the process.
//
//   static const Immortal<Lease> none;
//   return *none;
#pragma once

namespace dlock::util {

template <class T>
class Immortal {
 public:
  constexpr Immortal() : value_() {}
  Immortal(const Immortal&) = delete;
  Immortal& operator=(const Immortal&) = delete;
  constexpr ~Immortal() {}  // NOLINT(modernize-use-equals-default): defaulted, it would be deleted

  [[nodiscard]] constexpr const T& operator*() const noexcept { return value_; }

 private:
  union {
    T value_;  // NOLINT(readability-identifier-naming): a private member all the same
  };
};

}  // namespace dlock::util
