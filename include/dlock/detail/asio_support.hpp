// Parts of <dlock/asio.hpp> and <dlock/boost_asio.hpp> that need nothing of Asio.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dlock/duration.hpp>
#include <dlock/election.hpp>
#include <dlock/options.hpp>

namespace dlock::detail {

// --- Options in braces -----------------------------------------------------------------------------------------------
// In a co_await expression, GCC 12 copies each member of a temporary aggregate byte by byte, and then destroys the copy
// and the original. A braced list of options therefore becomes one of these aggregates, whose members need no
// destruction. They refer to the values in the call, which copies them into AcquireOptions or CampaignOptions.

class StopTokenRef {
 public:
  StopTokenRef() noexcept = default;
  StopTokenRef(const std::stop_token& token) noexcept : token_(&token) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] std::stop_token get() const noexcept { return token_ != nullptr ? *token_ : std::stop_token(); }

 private:
  const std::stop_token* token_ = nullptr;
};

// AcquireOptions in braces.
struct BracedAcquireOptions {
  Duration wait = forever;
  std::optional<Duration> lease = std::nullopt;
  bool renew = true;
  StopTokenRef cancel = {};
};

// CampaignOptions in braces.
struct BracedCampaignOptions {
  std::string_view value = {};
  Duration wait = forever;
  std::optional<Duration> lease = std::nullopt;
  bool renew = true;
  StopTokenRef cancel = {};
};

static_assert(std::is_trivially_destructible_v<BracedAcquireOptions>);
static_assert(std::is_trivially_destructible_v<BracedCampaignOptions>);

[[nodiscard]] inline AcquireOptions owned(const BracedAcquireOptions& options) {
  return {.wait = options.wait, .lease = options.lease, .renew = options.renew, .cancel = options.cancel.get()};
}
[[nodiscard]] inline CampaignOptions owned(const BracedCampaignOptions& options) {
  return {.value = std::string(options.value),
          .wait = options.wait,
          .lease = options.lease,
          .renew = options.renew,
          .cancel = options.cancel.get()};
}
[[nodiscard]] inline AcquireOptions owned(const AcquireOptions& options) {
  return options;
}
[[nodiscard]] inline CampaignOptions owned(const CampaignOptions& options) {
  return options;
}

// Options that a call may be given: in braces, or as a variable.
template <class Given, class Braced, class Owned>
inline constexpr bool safe_options = std::is_same_v<std::decay_t<Given>, Braced> ||
                                     (std::is_same_v<std::decay_t<Given>, Owned> && std::is_lvalue_reference_v<Given>);

template <class Given, class Braced, class Owned>
void check_options() {
  static_assert(safe_options<Given, Braced, Owned>,
                "write the options in braces, {.wait = 5s}, or name a variable of type dlock::AcquireOptions or "
                "dlock::CampaignOptions: GCC 12 destroys the members of a temporary one twice if the call is in a "
                "co_await expression");
}

// --- The object that an operation is about ---------------------------------------------------------------------------

// A temporary lock or lease is moved into the operation, because the operation may start later. Of a variable it keeps
// the reference.
template <class Given>
using Kept = std::conditional_t<std::is_lvalue_reference_v<Given>,
                                std::reference_wrapper<std::remove_reference_t<Given>>, std::decay_t<Given>>;
template <class T>
[[nodiscard]] T& unwrap(T& kept) noexcept {
  return kept;
}
template <class T>
[[nodiscard]] T& unwrap(std::reference_wrapper<T>& kept) noexcept {
  return kept.get();
}

// --- Pending operations ----------------------------------------------------------------------------------------------

// The operations whose handlers belong to one execution context and have not been handed to it. The context owns them
// like those of its own sockets: when it is destroyed, it destroys their handlers without calling them, and cancels
// their acquires. Any thread.
class PendingOperations {
 private:
  struct Pending {
    std::shared_ptr<void> operation;
    std::stop_source stop;
  };

 public:
  // One of them. Its destruction discards the operation, unless it was completed.
  class Place {
   public:
    Place(std::shared_ptr<PendingOperations> all, std::shared_ptr<void> operation, std::stop_source stop)
        : all_(std::move(all)) {
      {
        const std::lock_guard guard(all_->mutex_);
        if (!all_->closed_) {
          at_ = all_->list_.insert(all_->list_.end(), {std::move(operation), std::move(stop)});
          return;
        }
      }
      (void)stop.request_stop();
    }
    Place(Place&& other) noexcept : all_(std::exchange(other.all_, nullptr)), at_(other.at_) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
      std::shared_ptr<void> discarded;  // destroyed after the mutex is unlocked: it may be the owner of anything
      complete([&discarded](std::shared_ptr<void> operation) { discarded = std::move(operation); });
    }

    // Calls deliver(operation), unless the execution context has been destroyed. It is not destroyed during the call.
    template <class Deliver>
    void complete(const Deliver& deliver) {
      const auto all = std::exchange(all_, nullptr);
      if (!all) return;
      const std::lock_guard guard(all->mutex_);
      if (all->closed_) return;
      auto operation = std::move(at_->operation);
      all->list_.erase(at_);
      deliver(std::move(operation));
    }

   private:
    std::shared_ptr<PendingOperations> all_;
    std::list<Pending>::iterator at_;
  };

  // Cancels and destroys all of them, and later ones at once.
  void close() {
    std::list<Pending> all;
    {
      const std::lock_guard guard(mutex_);
      closed_ = true;
      all.swap(list_);
    }
    for (const Pending& pending : all) (void)pending.stop.request_stop();
  }

 private:
  std::mutex mutex_;
  bool closed_ = false;
  std::list<Pending> list_;
};

}  // namespace dlock::detail
