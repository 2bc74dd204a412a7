// A lock is a row that names its holder. Every lock has a lease of its own, and each kind of locks a table.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/cleanup.hpp>
#include <dlock/spi/try_backend.hpp>

#include "backends/common/sql/observed_versions.hpp"
#include "backends/common/sql/row_batch.hpp"
#include "backends/common/sql/row_store.hpp"
#include "backends/common/sql/row_waker.hpp"
#include "backends/common/sql/services.hpp"

namespace dlock::sql {

class RowLocks final : public TryBackend {
 public:
  // waker: made with the store. nullptr: waiters poll, and often.
  using MakeWaker = std::function<std::unique_ptr<RowWaker>(const RowStore& store)>;

  // optimistic: a client waits on its own clock for a version that stands still (ObservedVersions).
  RowLocks(const Services& services, const Capabilities& capabilities, bool optimistic,
           std::unique_ptr<const RowStore> store, const MakeWaker& make_waker = nullptr);
  ~RowLocks() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override { return capabilities_; }

  void try_acquire(const LockRequest& request, TryHandler done) override;
  [[nodiscard]] std::unique_ptr<Watch> watch(LockKind kind, const std::string& name,
                                             std::function<void()> changed) override;
  [[nodiscard]] std::unique_ptr<Watch> wait_for(const LockRequest& request, std::function<void()> changed) override;
  void abandon(const LockRequest& request) override;
  void renew(const Grant& grant, RenewHandler done) override;
  void release(const Grant& grant, ReleaseHandler done) override;
  void close(std::function<void()> done) override;

 private:
  [[nodiscard]] std::chrono::nanoseconds mark_of(const LockRequest& request) const;
  [[nodiscard]] TryOutcome outcome_of(const LockRequest& request, const RowAnswer& answer);
  void note_held(const Grant& grant);
  void leave(const OwnerId& owner);
  [[nodiscard]] bool holds_any() const;

  const Services services_;
  const Capabilities capabilities_;
  const bool optimistic_;
  const std::unique_ptr<const RowStore> store_;
  RowBatch batch_;
  const std::unique_ptr<RowWaker> waker_;
  ObservedVersions observed_;
  struct Held {
    explicit Held(Executor& executor) : end(executor) {}
    TimePoint until;  // at the latest
    Timer end;        // armed only if the store outlives leases
  };
  std::unordered_map<OwnerId, Held> held_;  // lost locks may stay for a while
  std::size_t tidied_to_ = 0;               // the size of held_ after lost locks were last removed
  Cleanup cleanup_;
};

}  // namespace dlock::sql
