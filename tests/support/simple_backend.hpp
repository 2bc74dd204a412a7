// A small lock service inside the test's process, based on TryBackend: for tests of the layers above a backend.
//
//   auto service = std::make_shared<test::SimpleService>();
//   Client client = connect("simple://", {}, service->factory());
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <dlock/client.hpp>
#include <dlock/spi/try_backend.hpp>

namespace dlock::test {

// Thread-safe; may be shared by clients.
class SimpleService : public std::enable_shared_from_this<SimpleService> {
 public:
  explicit SimpleService(LeaseKind kind = LeaseKind::per_lock) : kind_(kind) {}
  [[nodiscard]] BackendFactory factory();

  // Takes the lock away from its holder, without a notification.
  void steal(const std::string& name) { free(name); }
  std::atomic<int> live_backends = 0;
  [[nodiscard]] bool held(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = locks_.find(name);
    return found != locks_.end() && found->second.held;
  }

 private:
  friend class SimpleBackend;
  struct Lock {
    bool held = false;
    OwnerId owner;
    TimePoint ends;
  };
  using Changed = std::shared_ptr<std::function<void()>>;

  void free(const std::string& name) {
    std::vector<Changed> woken;
    {
      const std::lock_guard lock(mutex_);
      locks_[name].held = false;
      for (const auto& [watched, changed] : watches_) {
        if (watched == name) woken.push_back(changed);
      }
    }
    for (const auto& changed : woken) (*changed)();
  }

  const LeaseKind kind_;
  mutable std::mutex mutex_;
  std::map<std::string, Lock> locks_;
  std::multimap<std::string, Changed> watches_;
  std::uint64_t last_token_ = 0;
};

class SimpleBackend : public TryBackend {
 public:
  SimpleBackend(BackendHost& host, std::shared_ptr<SimpleService> service)
      : TryBackend(host), service_(std::move(service)) {
    ++service_->live_backends;
  }
  ~SimpleBackend() override { --service_->live_backends; }

  [[nodiscard]] Capabilities capabilities() const noexcept override {
    return {.backend = "simple", .lease_kind = service_->kind_};
  }

  void try_acquire(const LockRequest& request, TryHandler done) override {
    const TimePoint now = host().executor().now();
    const TimePoint ends = ends_at(now, request.lease);
    std::uint64_t token = 0;
    {
      const std::lock_guard guard(service_->mutex_);
      auto& lock = service_->locks_[request.name];
      if (!lock.held || lock.ends <= now || lock.owner == request.owner) {
        lock = {true, request.owner, ends};
        token = ++service_->last_token_;
      }
    }
    if (token == 0) return done({.status = TryOutcome::Status::busy});
    done({.status = TryOutcome::Status::granted,
          .grant = {request.name, request.owner, FencingToken(token), valid_until(now, request.lease), request.lease}});
  }

  [[nodiscard]] std::unique_ptr<Watch> watch(LockKind /*kind*/, const std::string& name,
                                             std::function<void()> changed) override {
    // The release may run on a different client's thread: continue in a task of this client.
    auto alive = std::make_shared<bool>(true);
    auto wake = std::make_shared<std::function<void()>>(
        [&executor = host().executor(), weak = std::weak_ptr<bool>(alive), changed = std::move(changed)] {
          executor.post([weak, changed] {
            if (!weak.expired()) changed();
          });
        });
    return std::make_unique<SimpleWatch>(service_, name, std::move(wake), std::move(alive));
  }

  void renew(const Grant& grant, RenewHandler done) override {
    const TimePoint now = host().executor().now();
    bool ours = false;
    {
      const std::lock_guard guard(service_->mutex_);
      auto& lock = service_->locks_[grant.name];
      ours = lock.held && lock.owner == grant.owner && lock.ends > now;
      if (ours) lock.ends = ends_at(now, grant.lease);
    }
    if (!ours) return done({.status = RenewOutcome::Status::lost, .failure = {errc::lost, "not yours"}});
    done({.status = RenewOutcome::Status::renewed, .valid_until = valid_until(now, grant.lease)});
  }

  void release(const Grant& grant, ReleaseHandler done) override {
    bool ours = false;
    {
      const std::lock_guard guard(service_->mutex_);
      const auto& lock = service_->locks_[grant.name];
      ours = lock.held && lock.owner == grant.owner && lock.ends > host().executor().now();
    }
    if (ours) service_->free(grant.name);
    done({.status = ours ? ReleaseOutcome::Status::released : ReleaseOutcome::Status::not_owner});
  }

 private:
  class SimpleWatch final : public Watch {
   public:
    SimpleWatch(std::shared_ptr<SimpleService> service, const std::string& name, SimpleService::Changed changed,
                std::shared_ptr<bool> alive)
        : service_(std::move(service)), alive_(std::move(alive)) {
      const std::lock_guard guard(service_->mutex_);
      place_ = service_->watches_.emplace(name, std::move(changed));
    }
    ~SimpleWatch() override {
      const std::lock_guard guard(service_->mutex_);
      service_->watches_.erase(place_);
    }

   private:
    const std::shared_ptr<SimpleService> service_;
    const std::shared_ptr<bool> alive_;
    std::multimap<std::string, SimpleService::Changed>::iterator place_;
  };

  [[nodiscard]] TimePoint ends_at(TimePoint now, std::chrono::nanoseconds lease) const {
    return service_->kind_ == LeaseKind::per_lock ? saturating_add(now, lease) : TimePoint::max();
  }
  [[nodiscard]] TimePoint valid_until(TimePoint now, std::chrono::nanoseconds lease) const {
    return service_->kind_ == LeaseKind::per_lock ? lease_valid_until(now, lease) : TimePoint::max();
  }

  const std::shared_ptr<SimpleService> service_;
};

inline BackendFactory SimpleService::factory() {
  return [self = shared_from_this()](BackendHost& host, const BackendConfig& config) -> std::unique_ptr<Backend> {
    config.url.require_no_parameters();
    return std::make_unique<SimpleBackend>(host, self);
  };
}

}  // namespace dlock::test
