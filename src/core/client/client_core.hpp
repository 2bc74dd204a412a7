// A client: its engine, its backend, the acquires in progress, the leases that are held.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include <dlock/client.hpp>
#include <dlock/options.hpp>
#include <dlock/spi/backend.hpp>

#include "core/client/acquisition.hpp"
#include "core/client/client_context.hpp"
#include "core/client/counters.hpp"
#include "core/client/lease_table.hpp"
#include "engine/engine.hpp"

namespace dlock::detail {

class LeaderObserver;

// Shared by the client, its locks and its leases. After close() it is empty, and answers `closed`.
class ClientCore final : public BackendHost, public std::enable_shared_from_this<ClientCore> {
 public:
  // Options must have been validated. Throws what the factory throws.
  [[nodiscard]] static std::shared_ptr<ClientCore> create(std::shared_ptr<engine::Engine> engine, Url url,
                                                          const ClientOptions& options, const BackendFactory& factory);
  explicit ClientCore(std::shared_ptr<ClientContext> context);
  ~ClientCore();

  // --- Any thread ---
  [[nodiscard]] Stats stats() const noexcept;
  // See ~Client. At most one call.
  void close() noexcept;
  [[nodiscard]] const ClientContext& context() const noexcept { return *context_; }
  [[nodiscard]] engine::Engine& engine() const noexcept { return *context_->engine; }
  [[nodiscard]] Notifier& notifier() const noexcept { return *context_->notifier; }
  [[nodiscard]] Counters& counters() noexcept { return counters_; }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  [[nodiscard]] bool closing() const noexcept { return closing_.load(std::memory_order_acquire); }
  // For a synchronous caller, if the engine is busy.
  [[nodiscard]] engine::IfBusy if_busy() const noexcept {
    return context_->capabilities.immediate ? engine::IfBusy::wait_for_turn : engine::IfBusy::leave_task;
  }

  // --- BackendHost ---
  [[nodiscard]] Executor& executor() noexcept override { return *context_->engine; }
  void extended(const OwnerId& owner, TimePoint valid_until) override { leases_.extended(owner, valid_until); }
  void lost(const OwnerId& owner, Failure why) override { leases_.gone(owner, std::move(why)); }
  void connection(ConnectionEvent event) override;
  void warn(WarningEvent event) override;
  [[nodiscard]] OwnerId new_owner_id() override;

  // --- In tasks ---
  [[nodiscard]] Backend& backend() noexcept { return *backend_; }
  [[nodiscard]] LeaseTable& leases() noexcept { return leases_; }

  // An acquire in progress, until its contention is destroyed.
  void keep(std::shared_ptr<Acquisition> acquisition);
  void forget(Acquisition& acquisition) noexcept;
  void forget_later(Acquisition& acquisition);
  // An observer of an election, until it is stopped.
  void keep(std::shared_ptr<LeaderObserver> observer);
  void forget(LeaderObserver& observer) noexcept;
  void acquire_ended(const AcquireResult& result, bool waited) noexcept;
  // The backend has answered a release.
  void release_answered();

 private:
  struct Closing;

  void make_backend(Url url, const BackendFactory& factory);
  // Ends all acquires and leases, has the backend finish its clean-up, and calls `closed`.
  void begin_close(Task closed);
  void end_close() noexcept;

  const std::shared_ptr<ClientContext> context_;
  Counters counters_;
  std::atomic<bool> closing_{false};  // set before the leases are lost

  // The rest belongs to the engine's tasks.
  std::unique_ptr<Backend> backend_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Acquisition>> acquisitions_;  // by their numbers
  std::uint64_t last_acquisition_ = 0;
  std::unordered_map<LeaderObserver*, std::shared_ptr<LeaderObserver>> observers_;
  LeaseTable leases_{*this};
  bool interrupted_ = false;  // the connection was lost, and has not been reported as back
  Task closed_;               // set while the releases of begin_close() are under way
};

}  // namespace dlock::detail
