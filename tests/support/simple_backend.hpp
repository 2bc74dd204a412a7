// A small lock service inside the test's process, for tests of the layers above a backend: the memory backend's store,
// of which each service has its own.
//
//   auto service = std::make_shared<test::SimpleService>();
//   Client client = connect("simple://", {}, service->factory());
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <dlock/client.hpp>
#include <dlock/spi/try_backend.hpp>

#include "backends/memory/memory_backend.hpp"

namespace dlock::test {

// Thread-safe; may be shared by clients.
class SimpleService : public std::enable_shared_from_this<SimpleService> {
 public:
  explicit SimpleService(LeaseKind kind = LeaseKind::per_lock) : kind_(kind) {}
  [[nodiscard]] BackendFactory factory();

  // Takes the lock away from its holder, without a notification.
  void steal(const std::string& name) { store_->break_lock(LockKind::lock, name, *boottime_clock()); }
  [[nodiscard]] bool held(const std::string& name) const {
    return store_->inspect(LockKind::lock, name, *boottime_clock()).held;
  }
  std::atomic<int> live_backends = 0;

 private:
  friend class SimpleBackend;
  const LeaseKind kind_;
  const std::shared_ptr<memory::MemoryStore> store_ = std::make_shared<memory::MemoryStore>();
};

class SimpleBackend final : public TryBackend {
 public:
  SimpleBackend(BackendHost& host, std::shared_ptr<SimpleService> service)
      : TryBackend(host), service_(std::move(service)), inner_(host, service_->store_, memory::Strategy::watch) {
    ++service_->live_backends;
  }
  ~SimpleBackend() override { --service_->live_backends; }

  [[nodiscard]] Capabilities capabilities() const noexcept override {
    return {.backend = "simple", .lease_kind = service_->kind_};
  }
  void try_acquire(const LockRequest& request, TryHandler done) override {
    inner_.try_acquire(request, [kind = service_->kind_, done = std::move(done)](TryOutcome outcome) {
      if (kind != LeaseKind::per_lock) outcome.grant.valid_until = TimePoint::max();
      done(std::move(outcome));
    });
  }
  [[nodiscard]] std::unique_ptr<Watch> watch(LockKind kind, const std::string& name,
                                             std::function<void()> changed) override {
    return inner_.watch(kind, name, std::move(changed));
  }
  void renew(const Grant& grant, RenewHandler done) override { inner_.renew(grant, std::move(done)); }
  void release(const Grant& grant, ReleaseHandler done) override { inner_.release(grant, std::move(done)); }

 private:
  const std::shared_ptr<SimpleService> service_;
  memory::MemoryBackend inner_;
};

inline BackendFactory SimpleService::factory() {
  return [self = shared_from_this()](BackendHost& host, const BackendConfig& config) -> std::unique_ptr<Backend> {
    config.url.require_no_parameters();
    return std::make_unique<SimpleBackend>(host, self);
  };
}

}  // namespace dlock::test
