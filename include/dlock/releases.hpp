// Gives locks back, and makes sure that owners who gave up leave nothing behind, whatever becomes of the messages. For
// backends where a lock is freed by naming its owner.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include <dlock/backend.hpp>
#include <dlock/backoff.hpp>

namespace dlock {

// In tasks only.
class Releases {
 public:
  enum class Reason {
    release,  // of a lock that was held
    give_up,  // goes the way that the owner's acquires went, so that it arrives behind them
  };
  // True: it was the owner's until now. errc::ambiguous: that may have been carried out.
  using Answer = std::function<void(Result<bool> ours)>;
  // Asks the service to free a lock if it is the owner's. Answers at the latest at the deadline.
  using Ask = std::function<void(const std::string& name, const OwnerId& owner, Reason reason, TimePoint deadline,
                                 Answer answer)>;

  // patience: for so long after its lease has run out something of an owner may be left at the service.
  Releases(Executor& executor, std::chrono::nanoseconds response_timeout, std::chrono::nanoseconds patience, Ask ask);

  // Answers within the response timeout; goes on in the background if it was not confirmed by then.
  void release(const Grant& grant, Backend::ReleaseHandler done);

  // The owner gives up: it neither holds nor waits, nor will it when its last request arrives late. Goes on until
  // that is certain. stragglers: a connection broke under one of its requests, which may yet arrive.
  void abandon(const std::string& name, const OwnerId& owner, std::chrono::nanoseconds lease, bool stragglers);

  // The server gave this owner a lock. No effect unless it was abandoned.
  void heard_of(const OwnerId& owner);

  // Of the owners that gave up, those of whom it is not certain yet that nothing is left. In no particular order.
  template <class F>
  void for_each_unconfirmed(F&& f) const {
    for (const auto& [owner, entry] : entries_) {
      if (!entry.confirmed) f(entry.name, owner);
    }
  }

  // Calls done once nothing is left to be confirmed.
  void finish(std::function<void()> done);

 private:
  struct Attempt;
  struct Entry {
    explicit Entry(Executor& executor) : timer(executor) {}
    std::string name;
    TimePoint moot;  // when the server has forgotten the owner by itself
    bool confirmed = false;
    bool stragglers = false;
    Backoff backoff{std::chrono::seconds(1)};
    Timer timer;
  };

  void attempt(std::shared_ptr<Attempt> attempt);
  void clean(const OwnerId& owner);
  void cleaned(const OwnerId& owner, const Result<bool>& answer);
  void forget(const OwnerId& owner);
  void report_if_finished();
  [[nodiscard]] TimePoint answer_by() const noexcept;

  Executor& executor_;
  const std::chrono::nanoseconds response_timeout_;
  const std::chrono::nanoseconds patience_;
  const Ask ask_;
  std::unordered_map<OwnerId, Entry> entries_;
  std::size_t unconfirmed_ = 0;
  std::function<void()> finished_;
};

}  // namespace dlock
