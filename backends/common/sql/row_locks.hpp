// strategy=table and strategy=optimistic: a lock is a row that names its holder. Every lock has a lease of its own, and
// each kind of locks a table and a channel.
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
#include "backends/postgres/rows/wake_ups.hpp"
#include "backends/postgres/services.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

class RowLocks final : public TryBackend {
 public:
  explicit RowLocks(const Services& services, LockKind kind = LockKind::lock);
  ~RowLocks() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override;

  void try_acquire(const LockRequest& request, TryHandler done) override;
  [[nodiscard]] std::unique_ptr<Watch> watch(LockKind kind, const std::string& name,
                                             std::function<void()> changed) override;
  void abandon(const LockRequest& request) override;
  void renew(const Grant& grant, RenewHandler done) override;
  void release(const Grant& grant, ReleaseHandler done) override;
  void close(std::function<void()> done) override;

 private:
  [[nodiscard]] bool optimistic() const noexcept { return services_.options.strategy == Strategy::optimistic; }
  [[nodiscard]] std::chrono::nanoseconds mark_of(const LockRequest& request) const;
  [[nodiscard]] TryOutcome outcome_of(const LockRequest& request, const RowAnswer& answer);
  void note_held(const OwnerId& owner, TimePoint until);
  [[nodiscard]] bool holds_any() const;

  const Services services_;
  const RowCommands statements_;
  RowBatch batch_;
  WakeUps wake_ups_;
  ObservedVersions observed_;
  std::unordered_map<OwnerId, TimePoint> held_;  // until when at the latest; lost locks may stay for a while
  std::size_t tidied_to_ = 0;                    // the size of held_ after lost locks were last removed
  Cleanup cleanup_;
};

}  // namespace dlock::postgres
