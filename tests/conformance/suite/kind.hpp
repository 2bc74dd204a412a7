// The kinds of locks that the contract is tested with, as far as it is the same for all: ways to get a lease. Whether
// it is held or lost, its token and its release belong to the lease, whatever its kind.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <dlock/client.hpp>
#include <dlock/election.hpp>
#include <dlock/lease.hpp>
#include <dlock/lock.hpp>
#include <dlock/lock_kind.hpp>
#include <dlock/options.hpp>
#include <dlock/read_write_lock.hpp>
#include <dlock/semaphore.hpp>

namespace dlock::conformance {

// A lock of any kind; the functions are those of DistributedLock.
class Lock {
 public:
  Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  virtual ~Lock() = default;

  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  virtual Lease acquire(const AcquireOptions& options) = 0;
  virtual Lease acquire(const AcquireOptions& options, std::error_code& ec) = 0;
  [[nodiscard]] virtual std::optional<Lease> try_acquire() = 0;
  [[nodiscard]] virtual std::optional<Lease> try_acquire(const AcquireOptions& options, std::error_code& ec) = 0;
  [[nodiscard]] virtual std::optional<Lease> try_acquire_for(Duration wait, std::error_code& ec) = 0;
  virtual void async_acquire(const AcquireOptions& options, std::function<void(std::error_code, Lease)> handler) = 0;
};

// Wraps any of the library's locks that is held by one at a time.
template <class Of>
class ExclusiveLock final : public Lock {
 public:
  explicit ExclusiveLock(Of lock) : lock_(std::move(lock)) {}

  [[nodiscard]] const std::string& name() const noexcept override { return lock_.name(); }
  Lease acquire(const AcquireOptions& options) override { return lock_.acquire(options); }
  Lease acquire(const AcquireOptions& options, std::error_code& ec) override { return lock_.acquire(options, ec); }
  [[nodiscard]] std::optional<Lease> try_acquire() override { return lock_.try_acquire(); }
  [[nodiscard]] std::optional<Lease> try_acquire(const AcquireOptions& options, std::error_code& ec) override {
    return lock_.try_acquire(options, ec);
  }
  [[nodiscard]] std::optional<Lease> try_acquire_for(Duration wait, std::error_code& ec) override {
    return lock_.try_acquire_for(wait, {}, ec);
  }
  void async_acquire(const AcquireOptions& options, std::function<void(std::error_code, Lease)> handler) override {
    lock_.async_acquire(options, std::move(handler));
  }

 private:
  Of lock_;
};

// For an election: a campaign is an acquire.
class Candidate final {
 public:
  explicit Candidate(Election election) : election_(std::move(election)) {}

  [[nodiscard]] const std::string& name() const noexcept { return election_.name(); }
  Lease acquire(const AcquireOptions& options) { return election_.campaign(campaign(options)); }
  Lease acquire(const AcquireOptions& options, std::error_code& ec) {
    return election_.campaign(campaign(options), ec);
  }
  [[nodiscard]] std::optional<Lease> try_acquire() { return election_.try_campaign(); }
  [[nodiscard]] std::optional<Lease> try_acquire(const AcquireOptions& options, std::error_code& ec) {
    return election_.try_campaign(campaign(options), ec);
  }
  [[nodiscard]] std::optional<Lease> try_acquire_for(Duration wait, const AcquireOptions& options,
                                                     std::error_code& ec) {
    return election_.try_campaign_for(wait, campaign(options), ec);
  }
  template <class Handler>
  void async_acquire(const AcquireOptions& options, Handler&& handler) {
    election_.async_campaign(campaign(options), std::forward<Handler>(handler));
  }

 private:
  [[nodiscard]] static CampaignOptions campaign(const AcquireOptions& options) {
    return {.value = "a candidate",
            .wait = options.wait,
            .lease = options.lease,
            .renew = options.renew,
            .cancel = options.cancel};
  }

  Election election_;
};

struct Kind {
  std::string name;  // becomes part of the tests' names; empty: the plain lock
  LockKind kind = LockKind::lock;
  std::function<std::unique_ptr<Lock>(const Client&, const std::string& name)> make;
};

// The plain lock comes first.
[[nodiscard]] inline const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"", LockKind::lock,
       [](const Client& client, const std::string& name) {
         return std::make_unique<ExclusiveLock<DistributedLock>>(client.make_lock(name));
       }},
      {"to_write", LockKind::read_write,
       [](const Client& client, const std::string& name) {
         return std::make_unique<ExclusiveLock<ReadWriteLock>>(client.make_read_write_lock(name));
       }},
      {"one_permit", LockKind::semaphore,
       [](const Client& client, const std::string& name) {
         return std::make_unique<ExclusiveLock<Semaphore>>(client.make_semaphore(name, 1));
       }},
      {"to_lead", LockKind::election, [](const Client& client, const std::string& name) {
         return std::make_unique<ExclusiveLock<Candidate>>(Candidate(client.make_election(name)));
       }}};
  return all;
}

}  // namespace dlock::conformance
