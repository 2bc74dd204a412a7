// Handlers that may outlive their object. For backend authors.
//
//   executor.post(lifetime_.guard([this] { flush(); }));     // does nothing once the object is gone
//
//   const dlock::Lifetime::Watch self = lifetime_.watch();   // around a call that may destroy the object
//   listener_.received(message);
//   if (self.over()) return;
//
// Make it the last member of a class, so that it ends before the other members.
#pragma once

#include <memory>
#include <utility>

namespace dlock {

// In tasks only.
class Lifetime {
 public:
  // Knows whether the object still exists.
  class Watch {
   public:
    // Whether the object was destroyed.
    [[nodiscard]] bool over() const noexcept { return token_.expired(); }

   private:
    friend class Lifetime;
    explicit Watch(std::weak_ptr<const char> token) noexcept : token_(std::move(token)) {}
    std::weak_ptr<const char> token_;
  };

  Lifetime() = default;
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;
  ~Lifetime() = default;

  [[nodiscard]] Watch watch() const {
    if (!token_) token_ = std::make_shared<const char>();
    return Watch(token_);
  }

  // The same handler, but after the end of this lifetime it does nothing. Only for handlers that return nothing and do
  // not change their captures.
  template <class F>
  [[nodiscard]] auto guard(F handler) const {
    return [watch = watch(), handler = std::move(handler)](auto&&... arguments) {
      if (!watch.over()) handler(std::forward<decltype(arguments)>(arguments)...);
    };
  }

 private:
  mutable std::shared_ptr<const char> token_;  // made when it is first needed
};

}  // namespace dlock
