// The leases of a client: kept, lost, released. In tasks only.
//
//   an entry             | until
//   ---------------------+-----------------------------------------------------------------------------------------
//   with `keeping`       | the lease is lost (`keeping` ends), or the program has released it (the entry ends)
//   without: it is lost  | the program has released it, if only by the destructor of its Lease
//
// The program sees the LeaseRecord; see there for its phases.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <vector>

#include <dlock/options.hpp>
#include <dlock/spi/backend.hpp>

#include "core/client/lease_record.hpp"
#include "core/client/renewal_schedule.hpp"

namespace dlock::detail {

class LeaseTable {
 public:
  explicit LeaseTable(ClientCore& core) noexcept : core_(core) {}

  // Makes a lease of a grant. started: when the acquire began.
  [[nodiscard]] std::shared_ptr<LeaseRecord> hold(Grant grant, const AcquireOptions& options, TimePoint started);

  // Reports of the backend. Ignored for an unknown owner.
  void extended(const OwnerId& owner, TimePoint valid_until);
  void gone(const OwnerId& owner, Failure why);
  void reconnected();

  // The program has released it, lost or not; no effect if that was done before.
  void give_back(std::shared_ptr<LeaseRecord> lease);
  // Frees a grant whose caller no longer waits.
  void release_unwanted(const Grant& grant);

  // Loses and releases all of them.
  void close();
  // The backend has releases to answer; `release_answered` is called whenever it has answered one.
  [[nodiscard]] bool releasing() const noexcept { return !releasing_.empty(); }
  // The backend is gone: answers the callers of releases that it has not answered.
  void end_releases();

 private:
  struct Keeping {
    Keeping(Executor& executor, RenewalSchedule when, TimePoint end)
        : schedule(when), timer(executor), fixed_end(end) {}

    RenewalSchedule schedule;
    Timer timer;
    // The client ends the lease then, although the service would keep it; max(): never.
    const TimePoint fixed_end;
    TimePoint renewal_sent;
    std::vector<std::error_code> warned_of;  // since the last renewal
  };
  struct Entry {
    std::shared_ptr<LeaseRecord> record;
    std::optional<Keeping> keeping;
    bool in_backend = true;  // the backend may still know the grant, so that giving the lease back has to reach it
  };
  using Step = RenewalSchedule::Step;

  [[nodiscard]] Entry* find(const OwnerId& owner);
  // Each of these may lose or erase the entry.
  void follow(Entry& entry, const Step& step);
  void renew(Entry& entry);
  void renewal_ended(const OwnerId& owner, const RenewOutcome& outcome);
  [[nodiscard]] bool ended_by_program(Entry& entry);

  // The lease can no longer be relied on; no effect if it was lost before.
  void lose(Entry& entry, Failure why);
  void expire(Entry& entry);
  void warn_once(Entry& entry, const Failure& failure);
  void release_in_backend(const Grant& grant, std::shared_ptr<LeaseRecord> lease);
  void released(LeaseRecord& lease, const ReleaseOutcome& outcome);

  ClientCore& core_;
  std::unordered_map<OwnerId, Entry> entries_;
  std::uint64_t last_release_ = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<LeaseRecord>> releasing_;  // nullptr: no caller waits
};

}  // namespace dlock::detail
