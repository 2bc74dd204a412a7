// Releases locks, and makes sure that cancelled acquires leave nothing in the service, even if messages are lost. For
// backends that release a lock by its owner id.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/backoff.hpp>

namespace dlock {

// In tasks only.
class Cleanup {
 public:
  // A lock that an owner may hold or wait for.
  struct Claim {
    LockKind kind = LockKind::lock;
    std::string name;
    OwnerId owner;
  };
  enum class Reason {
    release,  // of a lock that was held
    give_up,  // after a cancelled acquire: sent on the same path, so that it arrives after the acquire
  };
  // True: the owner held it until now. errc::ambiguous: the service may have carried it out.
  using Answer = std::function<void(Result<bool> ours)>;
  // Asks the service to release a lock if this owner holds it. Answers at the deadline at the latest, but after a
  // give_up it may wait until the service can be used.
  using Ask = std::function<void(const Claim& claim, Reason reason, TimePoint deadline, Answer answer)>;

  // patience: how long after the lease expired the service may still have something of an owner.
  Cleanup(Executor& executor, std::chrono::nanoseconds response_timeout, std::chrono::nanoseconds patience, Ask ask);

  // Answers within the response timeout, and continues in the background if it was not confirmed by then.
  void release(const Grant& grant, Backend::ReleaseHandler done);

  // The owner cancelled its acquire. Makes sure that it neither holds nor waits, even if its last request arrives late,
  // and repeats until that is certain. late_requests: a connection broke during one of its requests, which may still
  // arrive.
  void abandon(Claim claim, std::chrono::nanoseconds lease, bool late_requests);
  void abandon(const LockRequest& request, bool late_requests) {
    abandon({request.kind, request.name, request.owner}, request.lease, late_requests);
  }
  void abandon(const Grant& grant, bool late_requests) {
    abandon({grant.kind, grant.name, grant.owner}, grant.lease, late_requests);
  }

  // A request of this owner was not answered, and may arrive even after the release of what it is granted: release()
  // then abandons the claim, too. Forgotten after that time.
  void in_doubt(const OwnerId& owner, std::chrono::nanoseconds how_long);
  [[nodiscard]] bool is_in_doubt(const OwnerId& owner) const { return in_doubt_.contains(owner); }

  // The service can be used again: ends the pauses before retries of what it has not confirmed yet. Call it before new
  // acquires are sent.
  void retry_now();

  // The service granted this owner a lock. No effect unless it was abandoned.
  void granted_late(const OwnerId& owner);

  // The claims of abandoned owners that the service has not confirmed to be gone, in no particular order.
  template <class F>
  void for_each_unconfirmed(F&& f) const {
    for (const auto& [owner, entry] : entries_) {
      if (!entry.confirmed) f(entry.claim);
    }
  }

  // Calls done when everything is confirmed.
  void finish(std::function<void()> done);

 private:
  struct Attempt;
  struct Entry {
    explicit Entry(Executor& executor) : timer(executor) {}
    Claim claim;
    TimePoint expires;  // when the service has forgotten the owner by itself
    bool confirmed = false;
    bool late_requests = false;
    Backoff backoff{std::chrono::seconds(1)};
    Timer timer;
  };

  void attempt(std::shared_ptr<Attempt> attempt);
  void clean(const OwnerId& owner);
  void on_answer(const OwnerId& owner, const Result<bool>& answer);
  void forget(const OwnerId& owner);
  void report_if_finished();
  [[nodiscard]] TimePoint answer_by() const noexcept;

  Executor& executor_;
  const std::chrono::nanoseconds response_timeout_;
  const std::chrono::nanoseconds patience_;
  const Ask ask_;
  std::unordered_map<OwnerId, Entry> entries_;
  std::unordered_map<OwnerId, TimePoint> in_doubt_;  // and until when
  std::size_t unconfirmed_ = 0;
  std::function<void()> finished_;
};

}  // namespace dlock
