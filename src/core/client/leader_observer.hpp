// Sees who leads an election, for a handler of the program: asks when the backend's watch says that something has
// changed, and now and then all the same.
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
  // Looks no more.
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
  bool silent_ = false;  // the last question was not answered
  std::optional<std::optional<Leader>> told_;

  // A call of the handler is due (then it will look at `newest_`), or under way.
  util::Mutex mutex_;
  std::optional<Leader> newest_ DLOCK_GUARDED_BY(mutex_);
  bool due_ DLOCK_GUARDED_BY(mutex_) = false;
  bool running_ DLOCK_GUARDED_BY(mutex_) = false;
  bool stopped_ DLOCK_GUARDED_BY(mutex_) = false;
  util::Event* returned_ DLOCK_GUARDED_BY(mutex_) = nullptr;  // a thread waits for the end of the call under way
  Handler handler_;                                           // belongs to the call under way, else to stop()
};

}  // namespace dlock::detail
