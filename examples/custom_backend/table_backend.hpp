// A complete lock backend in one file, against dlock's public headers only. docs/writing-a-backend.md explains it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <dlock/client.hpp>
#include <dlock/spi/backend.hpp>
#include <dlock/spi/try_backend.hpp>

namespace example {

// The service: a table with one row a lock. It might as well be a table in a database; then each function would be one
// statement. Every change names the owner, and checks and changes in one step.
class LockTable {
 public:
  struct Row {
    dlock::OwnerId owner;
    std::string holder;
    dlock::FencingToken token;
    dlock::TimePoint expires;  // a free lock is one that has expired
  };

  // Takes the lock if it is free, or extends it if this owner has it. Answers the row as it is then.
  Row take(const dlock::LockRequest& request, const dlock::Clock& clock) {
    const std::lock_guard lock(mutex_);
    Row& row = rows_[request.name];
    const auto now = clock.now();
    const bool free = row.expires <= now;
    if (!free && row.owner != request.owner) return row;
    if (free) row.token = std::max(dlock::FencingToken(row.token + 1), wall_token(clock));
    row.owner = request.owner;
    row.holder = request.holder;
    row.expires = dlock::saturating_add(now, request.lease);
    return row;
  }

  // Lets the lease of this owner end after so long, or now. Answers whether the lock had been this owner's.
  bool end_after(const std::string& name, const dlock::OwnerId& owner, std::chrono::nanoseconds lease,
                 const dlock::Clock& clock) {
    const std::lock_guard lock(mutex_);
    const auto row = rows_.find(name);
    if (row == rows_.end() || row->second.owner != owner || row->second.expires <= clock.now()) return false;
    row->second.expires = dlock::saturating_add(clock.now(), lease);
    return true;
  }

  [[nodiscard]] std::optional<Row> look(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto row = rows_.find(name);
    return row == rows_.end() ? std::nullopt : std::optional(row->second);
  }

 private:
  // Tokens that start at the wall clock keep growing though the table was lost.
  static dlock::FencingToken wall_token(const dlock::Clock& clock) {
    const auto wall = clock.wall_now().time_since_epoch();
    return dlock::FencingToken(
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(wall).count()));
  }

  std::mutex mutex_;
  std::map<std::string, Row> rows_;
};

class TableBackend final : public dlock::TryBackend {
 public:
  TableBackend(dlock::BackendHost& host, std::shared_ptr<LockTable> table)
      : TryBackend(host, {.poll_min = std::chrono::milliseconds(10), .poll_max = std::chrono::milliseconds(20)}),
        clock_(host.executor().clock()),
        table_(std::move(table)) {}

  [[nodiscard]] dlock::Capabilities capabilities() const noexcept override {
    return {.backend = "table",
            .strategy = "",
            .scope = dlock::Scope::process,
            .lease_kind = dlock::LeaseKind::per_lock,
            .fencing = dlock::FencingDurability::wall_clock,
            .wakes_waiters = false,
            .can_inspect = true,
            .can_break = true};
  }

  void try_acquire(const dlock::LockRequest& request, TryHandler done) override {
    const auto sent = clock_.now();  // before the request, so that we never believe in a lease longer than the table
    const auto row = table_->take(request, clock_);
    if (row.owner != request.owner) {
      return done({.status = dlock::TryOutcome::Status::busy, .retry_after = row.expires - sent});
    }
    done({.status = dlock::TryOutcome::Status::granted,
          .grant = {request.name, request.owner, row.token, dlock::lease_valid_until(sent, request.lease),
                    request.lease}});
  }

  // This table cannot tell when a row changes, so waiters poll.
  [[nodiscard]] std::unique_ptr<dlock::Watch> watch(dlock::LockKind /*kind*/, const std::string&,
                                                    std::function<void()>) override {
    return nullptr;
  }

  void renew(const dlock::Grant& grant, RenewHandler done) override {
    const auto sent = clock_.now();
    const bool ours = table_->end_after(grant.name, grant.owner, grant.lease, clock_);
    done({.status = ours ? dlock::RenewOutcome::Status::renewed : dlock::RenewOutcome::Status::lost,
          .valid_until = dlock::lease_valid_until(sent, grant.lease)});
  }

  void release(const dlock::Grant& grant, ReleaseHandler done) override {
    const bool ours = table_->end_after(grant.name, grant.owner, std::chrono::nanoseconds(0), clock_);
    done({.status = ours ? dlock::ReleaseOutcome::Status::released : dlock::ReleaseOutcome::Status::not_owner});
  }

  void inspect(dlock::LockKind /*kind*/, const std::string& name, Handler<dlock::LockInfo> done) override {
    dlock::LockInfo info{.name = name};
    if (const auto row = table_->look(name)) {
      info.token = row->token;
      info.held = row->expires > clock_.now();
      if (info.held) info.holder = row->holder;
      if (info.held) info.remaining = row->expires - clock_.now();
    }
    done(std::move(info));
  }

  void break_lock(dlock::LockKind /*kind*/, const std::string& name, Handler<bool> done) override {
    const auto row = table_->look(name);
    done(row && table_->end_after(name, row->owner, std::chrono::nanoseconds(0), clock_));
  }

 private:
  const dlock::Clock& clock_;
  const std::shared_ptr<LockTable> table_;
};

// What connect() calls for table://. The table comes from the program, as a connection pool might.
inline dlock::BackendFactory make_table_backend(std::shared_ptr<LockTable> table) {
  return [table](dlock::BackendHost& host, const dlock::BackendConfig& config) -> std::unique_ptr<dlock::Backend> {
    config.url.require_no_parameters();
    return std::make_unique<TableBackend>(host, table);
  };
}

}  // namespace example
