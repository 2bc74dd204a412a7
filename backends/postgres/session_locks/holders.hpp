// strategy=advisory: the sessions on which locks are tried for, each with its own share of the keys: while the server
// makes the tokens of one durable it does the work of another.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/postgres/session_locks/holder_session.hpp"
#include "backends/postgres/sql/lock_key.hpp"

namespace dlock::postgres {

// In tasks only.
class Holders {
 public:
  // All outlive it. most_locks: that they may hold together. when_quiet: called when quiet() may have become true.
  Holders(BackendHost& host, const Options& options, const Dialling& dialling, const AdvisorySql& sql,
          std::size_t sessions, std::size_t most_locks, const std::function<void()>& when_quiet);
  ~Holders();

  // Always the same for a key.
  [[nodiscard]] HolderSession& of(const LockKey& key);
  // A question that is about no lock, and waits for none. Answered as by HolderSession::ask().
  void ask(Query query);
  // False: that lock is not, or no longer, in one of them. As HolderSession::release().
  [[nodiscard]] bool release(const OwnerId& owner, const Backend::ReleaseHandler& done);
  [[nodiscard]] bool holds_any() const noexcept { return sum(&HolderSession::held) > 0; }
  // Nothing is under way.
  [[nodiscard]] bool quiet() const noexcept;

 private:
  [[nodiscard]] std::size_t sum(std::size_t (HolderSession::*count)() const noexcept) const noexcept;

  common::ConnectionNews news_;
  std::vector<std::unique_ptr<HolderSession>> sessions_;
};

}  // namespace dlock::postgres
