// The heart of a client: acquires in progress, leases held, and the backend that serves them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/backend.hpp>
#include <dlock/client.hpp>
#include <dlock/options.hpp>

#include "core/acquisition.hpp"
#include "core/counters.hpp"
#include "core/held_lease.hpp"
#include "engine/engine.hpp"

namespace dlock::detail {

// Called when a release ended: whether the lock had still been ours, and what went wrong.
using ReleaseCompletion = std::function<void(Failure failure, bool was_ours)>;

// "Any thread" functions hand a task to the engine; the others are for tasks only. Leases, locks and the Client share
// the ownership; after close() a core is an empty shell that answers `closed`.
class ClientCore final : public BackendHost, public std::enable_shared_from_this<ClientCore> {
 public:
  // Options must have been validated. Throws what the factory throws.
  [[nodiscard]] static std::shared_ptr<ClientCore> create(std::shared_ptr<engine::Engine> engine, Url url,
                                                          const ClientOptions& options, const BackendFactory& factory);
  explicit ClientCore(std::shared_ptr<engine::Engine> engine, const Url& url, const ClientOptions& options);
  ~ClientCore();

  // --- Any thread ---
  [[nodiscard]] const Capabilities& capabilities() const noexcept { return capabilities_; }
  [[nodiscard]] Stats stats() const noexcept { return counters_.snapshot(); }
  [[nodiscard]] const std::string& url() const noexcept { return redacted_url_; }
  [[nodiscard]] const std::string& holder() const noexcept { return holder_; }
  [[nodiscard]] engine::Engine& engine() noexcept { return *engine_; }
  [[nodiscard]] std::chrono::nanoseconds response_timeout() const noexcept { return response_timeout_; }
  [[nodiscard]] std::chrono::nanoseconds close_timeout() const noexcept { return close_timeout_; }

  // Whether the backend can keep such a lease.
  [[nodiscard]] std::optional<Failure> problem_with_lease(std::chrono::nanoseconds lease) const;

  // Starts an acquire; `done` runs exactly once, as a task, or right here when options are wrong or the client is
  // closed. Answers an id for cancel_acquire().
  Acquisition::Id acquire(const std::string& name, const AcquireOptions& options, AcquireCompletion done);
  void cancel_acquire(Acquisition::Id id);
  // Ends a lease; `done` as above.
  void release(std::shared_ptr<LeaseState> lease, ReleaseCompletion done);
  // Runs f(backend) as a task; f(nullptr), right here, if the client is closed.
  void with_backend(std::function<void(Backend*)> f);
  // Runs user code on the engine thread, or right here if there is none any more. An exception from it is caught and
  // counted.
  void notify(std::function<void()> user_code, engine::UserCode kind = engine::UserCode::other);
  // Tells the observer, if there is one. An event is dropped and counted while too many wait for it. Any thread.
  void tell(std::function<void(Observer&)> event);
  // See ~Client. At most one call.
  void close() noexcept;

  // --- BackendHost ---
  [[nodiscard]] Executor& executor() noexcept override { return *engine_; }
  void extended(const OwnerId& owner, TimePoint valid_until) override;
  void lost(const OwnerId& owner, Failure why) override;
  void connection(ConnectionEvent event) override;
  void warn(WarningEvent event) override;
  [[nodiscard]] OwnerId new_owner_id() override;

  // --- For Acquisition and HeldLease, in tasks ---
  [[nodiscard]] Backend& backend() noexcept { return *backend_; }
  // Makes a lease of a grant.
  [[nodiscard]] std::shared_ptr<LeaseState> hold(Grant grant, const AcquireOptions& options, TimePoint started);
  void acquire_ended(const AcquireResult& result, bool waited) noexcept;
  void check_acquire_deadline(Acquisition::Id id);
  void forget_acquire_later(Acquisition::Id id);
  void restart_acquire_later(Acquisition::Id id);
  // Frees a grant that nobody waits for any more.
  void release_unwanted(const Grant& grant);
  void renewal_ended(const OwnerId& owner, const RenewOutcome& outcome);
  void lease_lost(HeldLease& held, Failure why);
  [[nodiscard]] Counters& counters() noexcept { return counters_; }
  [[nodiscard]] bool observed() const noexcept { return observer_ != nullptr; }

 private:
  [[nodiscard]] std::optional<Failure> problem_with(const AcquireOptions& options) const;
  [[nodiscard]] bool foreign_process() const noexcept;
  void start_acquire(Acquisition::Id id, const std::string& name, const AcquireOptions& options,
                     AcquireCompletion done);
  void finish_release(const std::shared_ptr<LeaseState>& lease, bool was_held, const ReleaseCompletion& done);
  void release_in_backend(const Grant& grant, std::function<void(const ReleaseOutcome&)> done);
  void look_after_reconnection();
  void run_user_code(const std::function<void()>& user_code) noexcept;
  void begin_close(std::function<void()> closed);
  void close_backend_when_released();
  void close_on_engine_thread();
  void keep_forever();

  const std::shared_ptr<engine::Engine> engine_;
  const std::shared_ptr<const Clock> clock_;
  const std::shared_ptr<Observer> observer_;
  const std::string redacted_url_;
  const std::string holder_;
  const std::chrono::nanoseconds default_lease_;
  const std::chrono::nanoseconds response_timeout_;
  const std::chrono::nanoseconds connect_timeout_;
  const std::chrono::nanoseconds close_timeout_;
  const std::uint64_t fork_generation_;
  Capabilities capabilities_;
  Counters counters_;
  std::atomic<Acquisition::Id> next_acquisition_{1};
  std::atomic<std::size_t> events_pending_{0};
  Counters::Counter events_dropped_untold_{0};  // of which the observer has not heard

  // The rest belongs to the engine's tasks.
  std::unique_ptr<Backend> backend_;
  std::unordered_map<Acquisition::Id, std::unique_ptr<Acquisition>> acquisitions_;
  std::unordered_map<OwnerId, std::unique_ptr<HeldLease>> held_;
  std::size_t pending_releases_ = 0;
  bool interrupted_ = false;  // the connection was lost, and has not been reported as back
  bool closing_ = false;
  std::function<void()> closed_;  // set while the releases of begin_close() are under way
};

}  // namespace dlock::detail
