// Reports the leader of an election to a handler of the program: queries the service after each event of the backend's
// watch, and about once per second.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <dlock/election.hpp>
#include <dlock/info.hpp>
#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/result.hpp>

#include "util/event.hpp"
#include "util/mutex.hpp"

namespace dlock::detail {

class ClientCore;

// The leader, according to an answer of inspect().
[[nodiscard]] std::optional<Leader> leader_of(LockInfo info);

class LeaderObserver final : public std::enable_shared_from_this<LeaderObserver> {
 public:
  using Handler = std::function<void(const std::optional<Leader>&)>;

  LeaderObserver(std::shared_ptr<ClientCore> core, std::string name, Handler handler);

  // --- Any thread ---
  // At most one call.
  void begin();
  // See ~Observation. At most one call.
  void stop() noexcept;

  // --- In tasks ---
  // Sends no more queries.
  void end() noexcept;

 private:
  void start();
  void ask();
  void answered(const Result<LockInfo>& answer);
  void tell(std::optional<Leader> leader);
  void deliver();
  void returned() noexcept;

  const std::shared_ptr<ClientCore> core_;
  const std::string name_;

  // In tasks only.
  std::unique_ptr<Watch> watch_;
  Timer timer_;
  bool ended_ = false;
  bool asking_ = false;
  bool changed_meanwhile_ = false;
  bool silent_ = false;  // the last query failed
  std::optional<std::optional<Leader>> told_;

  // due_: a call of the handler is queued, and will read `newest_`. running_: a call is in progress.
  util::Mutex mutex_;
  std::optional<Leader> newest_ DLOCK_GUARDED_BY(mutex_);
  bool due_ DLOCK_GUARDED_BY(mutex_) = false;
  bool running_ DLOCK_GUARDED_BY(mutex_) = false;
  bool stopped_ DLOCK_GUARDED_BY(mutex_) = false;
  util::Event* returned_ DLOCK_GUARDED_BY(mutex_) = nullptr;  // a thread waits for the end of the call in progress
  Handler handler_;                                           // belongs to the call in progress, else to stop()
};

}  // namespace dlock::detail
