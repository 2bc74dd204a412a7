#include "table_backend.hpp"

#include <utility>

namespace outside {

// Keeps its place in the list of watchers until it is destroyed. The callback is shared, because a task that will call
// it may be under way at that time.
class TableBackend::Interest final : public dlock::Watch {
 public:
  Interest(TableBackend& backend, const std::string& name, std::function<void()> changed)
      : backend_(backend),
        place_(backend.watchers_.emplace(name, std::make_shared<std::function<void()>>(std::move(changed)))) {}
  ~Interest() override { backend_.watchers_.erase(place_); }

 private:
  TableBackend& backend_;
  std::multimap<std::string, std::shared_ptr<std::function<void()>>>::iterator place_;
};

dlock::Capabilities TableBackend::capabilities() const noexcept {
  return {.backend = "table"};
}

void TableBackend::try_acquire(const dlock::LockRequest& request, TryHandler done) {
  const dlock::TimePoint now = host().executor().now();
  const auto holder = held_.find(request.name);
  if (holder != held_.end() && holder->second.expires_at > now && holder->second.owner != request.owner) {
    done({.status = dlock::TryOutcome::Status::busy, .retry_after = holder->second.expires_at - now});
    return;
  }
  held_[request.name] = {.owner = request.owner, .expires_at = dlock::saturating_add(now, request.lease)};
  done({.status = dlock::TryOutcome::Status::granted,
        .grant = {.name = request.name,
                  .owner = request.owner,
                  .token = dlock::FencingToken(++last_token_),
                  .valid_until = dlock::lease_valid_until(now, request.lease),
                  .lease = request.lease}});
}

std::unique_ptr<dlock::Watch> TableBackend::watch(dlock::LockKind /*kind*/, const std::string& name,
                                                  std::function<void()> changed) {
  return std::make_unique<Interest>(*this, name, std::move(changed));
}

bool TableBackend::owns(const dlock::Grant& grant) const {
  const auto holder = held_.find(grant.name);
  return holder != held_.end() && holder->second.owner == grant.owner;
}

void TableBackend::renew(const dlock::Grant& grant, RenewHandler done) {
  const dlock::TimePoint now = host().executor().now();
  if (!owns(grant) || held_[grant.name].expires_at <= now) {
    done({.status = dlock::RenewOutcome::Status::lost});
    return;
  }
  held_[grant.name].expires_at = dlock::saturating_add(now, grant.lease);
  done({.status = dlock::RenewOutcome::Status::renewed, .valid_until = dlock::lease_valid_until(now, grant.lease)});
}

void TableBackend::release(const dlock::Grant& grant, ReleaseHandler done) {
  if (!owns(grant)) {
    done({.status = dlock::ReleaseOutcome::Status::not_owner});
    return;
  }
  held_.erase(grant.name);
  const auto [first, last] = watchers_.equal_range(grant.name);
  for (auto watcher = first; watcher != last; ++watcher) {
    host().executor().post([changed = std::weak_ptr(watcher->second)] {
      if (const auto call = changed.lock()) (*call)();
    });
  }
  done({.status = dlock::ReleaseOutcome::Status::released});
}

std::unique_ptr<dlock::Backend> make_table_backend(dlock::BackendHost& host, const dlock::BackendConfig& config) {
  config.url.require_no_parameters();
  return std::make_unique<TableBackend>(host);
}

}  // namespace outside
