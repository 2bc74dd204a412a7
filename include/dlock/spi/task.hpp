// Callback: a function to call later, like std::function but move-only, so that it never copies captures. Captures of
// up to six pointers need no allocation. Task: one without arguments. For backend authors.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <new>
#include <type_traits>
#include <utility>

namespace dlock {

// On an empty one only destruction, assignment, move and the test for emptiness are defined. As thread-safe as its
// function.
template <class... Args>
class Callback {
 public:
  Callback() noexcept = default;
  Callback(std::nullptr_t) noexcept {}  // NOLINT(google-explicit-constructor): as std::function

  // Throws what copying or moving `f` throws, and std::bad_alloc.
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, Callback> && std::invocable<std::decay_t<F>&, Args...>)
  Callback(F&& f) {  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload): as std::function
    using Held = std::decay_t<F>;
    if constexpr (fits<Held>) {
      ::new (static_cast<void*>(room_)) Held(std::forward<F>(f));
      operations_ = &in_place<Held>;
    } else {
      ::new (static_cast<void*>(room_))(Held*)(new Held(std::forward<F>(f)));
      operations_ = &elsewhere<Held>;
    }
  }

  Callback(Callback&& other) noexcept { take(other); }
  // Destroys the old function last, and outside this object: its destructor may assign to this one.
  Callback& operator=(Callback&& other) noexcept {
    if (this != &other) {
      const Callback before(std::move(*this));
      take(other);
    }
    return *this;
  }
  Callback& operator=(std::nullptr_t) noexcept {
    const Callback before(std::move(*this));
    return *this;
  }
  ~Callback() { reset(); }

  // May be called more than once.
  void operator()(Args... args) const { operations_->call(room_, std::forward<Args>(args)...); }
  [[nodiscard]] explicit operator bool() const noexcept { return operations_ != nullptr; }

 private:
  struct Operations {
    void (*call)(void* room, Args&&... args);
    void (*move)(void* from, void* to) noexcept;  // leaves nothing to destroy behind
    void (*destroy)(void* room) noexcept;
  };

  static constexpr std::size_t size = 6 * sizeof(void*);
  template <class Held>
  static constexpr bool fits =  // NOLINTNEXTLINE(misc-redundant-expression): redundant for some types only
      sizeof(Held) <= size && alignof(Held) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<Held>;

  template <class Held>
  static constexpr Operations in_place = {
      [](void* room, Args&&... args) { (void)std::invoke(*static_cast<Held*>(room), std::forward<Args>(args)...); },
      [](void* from, void* to) noexcept {
        auto* const held = static_cast<Held*>(from);
        ::new (to) Held(std::move(*held));
        held->~Held();
      },
      [](void* room) noexcept { static_cast<Held*>(room)->~Held(); }};
  template <class Held>
  static constexpr Operations elsewhere = {
      [](void* room, Args&&... args) { (void)std::invoke(**static_cast<Held**>(room), std::forward<Args>(args)...); },
      [](void* from, void* to) noexcept { ::new (to)(Held*)(*static_cast<Held**>(from)); },
      [](void* room) noexcept { delete *static_cast<Held**>(room); }};

  void reset() noexcept {
    if (operations_ != nullptr) std::exchange(operations_, nullptr)->destroy(room_);
  }
  void take(Callback& other) noexcept {
    if (other.operations_ == nullptr) return;
    operations_ = std::exchange(other.operations_, nullptr);
    operations_->move(other.room_, room_);
  }

  alignas(std::max_align_t) mutable std::byte room_[size];
  const Operations* operations_ = nullptr;
};

// The unit of work of an Executor.
using Task = Callback<>;

}  // namespace dlock
