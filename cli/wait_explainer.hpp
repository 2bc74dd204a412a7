// Tells a person who waits for a lock for whom.
#pragma once

#include <dlock/client.hpp>
#include <dlock/lock_kind.hpp>

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cli/output.hpp"
#include "cli/reporter.hpp"

namespace dlock::cli {

// The holder is asked for on a thread of its own: a service that hangs must not keep the caller from hearing of signals
// and of the grant.
class WaitExplainer {
 public:
  // Client and reporter must outlive it. Whom it tells is called on its thread or the caller's.
  WaitExplainer(const Client& client, const Reporter& reporter, std::function<void(std::string_view)> person = say)
      : client_(client), reporter_(reporter), person_(std::move(person)) {}
  WaitExplainer(const WaitExplainer&) = delete;
  WaitExplainer& operator=(const WaitExplainer&) = delete;
  // Waits for one answer that is still to come: for 1.25 times ClientOptions::response_timeout at most.
  ~WaitExplainer() { wait_is_over(); }

  // Says for what dlock waits, and for whom as soon as the service has said it. Does not block; call at most once.
  void explain(const std::vector<std::string>& names, LockKind kind = LockKind::lock);
  // Nothing is said from here on. Does not block.
  void wait_is_over();

 private:
  [[nodiscard]] bool worth_asking() const;
  void ask(const std::vector<std::string>& names, LockKind kind);
  void tell(const std::string& text);
  [[nodiscard]] bool is_over();

  const Client& client_;
  const Reporter& reporter_;
  const std::function<void(std::string_view)> person_;
  std::mutex mutex_;
  bool over_ = false;  // guarded by mutex_
  std::jthread thread_;
};

}  // namespace dlock::cli
