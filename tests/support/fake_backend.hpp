// A backend whose answers all come from the test.
//
//   auto service = std::make_shared<test::FakeService>();
//   auto core = ClientCore::create(engine, url, options, service->factory());
//   ... core->acquire(...)
//   engine->dispatch([&] { service->last_contend().sink->busy(); });
//
// Requests wait in lists until the test answers them, unless a hook answers inside the call. The fake checks what the
// SPI promises to backends: calls are tasks, a contention is not destroyed inside a call to its sink, a grant is
// released at most once and has one renewal in flight at most.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <dlock/client.hpp>
#include <dlock/spi/backend.hpp>

namespace dlock::test {

class FakeService : public std::enable_shared_from_this<FakeService> {
 public:
  struct Contend {
    LockRequest request;
    GrantSink* sink = nullptr;  // null once the contention was given up
    bool in_sink_call = false;

    // Calls the sink if it is still interested. In tasks only.
    template <class F>
    void report(F&& f) {
      if (sink == nullptr) return;
      in_sink_call = true;
      f(*sink);
      in_sink_call = false;
    }
    void busy() {
      report([](GrantSink& s) { s.busy(); });
    }
    void unreachable(errc code = errc::unavailable) {
      report([&](GrantSink& s) { s.unreachable({code, "out of reach"}); });
    }
    void fail(Failure why) {
      report([&](GrantSink& s) { s.failed(std::move(why)); });
    }
    void grant(Grant grant) {
      report([&](GrantSink& s) { s.granted(std::move(grant)); });
    }
  };
  struct Renewal {
    Grant grant;
    Backend::RenewHandler done;
  };
  struct Release {
    Grant grant;
    Backend::ReleaseHandler done;
  };

  [[nodiscard]] BackendFactory factory();

  [[nodiscard]] BackendHost& host() const { return *host_; }
  [[nodiscard]] bool has_backend() const noexcept { return host_ != nullptr; }
  [[nodiscard]] Contend& last_contend() const { return *contends.back(); }
  // A grant as a correct backend would make it, for a request sent now.
  [[nodiscard]] Grant grant_of(const LockRequest& request) {
    return {request.name, request.owner, FencingToken(++last_token), valid_until(request.lease), request.lease};
  }
  [[nodiscard]] TimePoint valid_until(std::chrono::nanoseconds lease) const {
    return capabilities.lease_kind == LeaseKind::process ? TimePoint::max()
                                                         : lease_valid_until(host_->executor().now(), lease);
  }
  [[nodiscard]] std::size_t live_contentions() const {
    return static_cast<std::size_t>(
        std::count_if(contends.begin(), contends.end(), [](const auto& c) { return c->sink != nullptr; }));
  }
  // Notifies the watchers. In tasks only.
  void change() {
    for (const auto& changed : std::vector(watches.begin(), watches.end())) (*changed)();
  }
  // Grants, renews and confirms everything at once.
  void answer_everything() {
    on_contend = [this](Contend& c) { c.grant(grant_of(c.request)); };
    on_renew = [this](Renewal& r) {
      r.done({.status = RenewOutcome::Status::renewed, .valid_until = valid_until(r.grant.lease)});
    };
    on_release = [](Release& r) { r.done({.status = ReleaseOutcome::Status::released}); };
  }
  void require_task() const {
    if (inside_task) {
      EXPECT_TRUE(inside_task()) << "the SPI was called outside a task";
    }
  }

  Capabilities capabilities{.backend = "fake", .min_lease = std::chrono::milliseconds(10)};
  std::function<bool()> inside_task;  // if set, checked at every call
  std::function<void(Contend&)> on_contend;
  std::function<void(Renewal&)> on_renew;
  std::function<void(Release&)> on_release;
  std::function<std::optional<Result<LockInfo>>(const std::string& name)> on_inspect;  // nullopt: not answered yet
  std::function<std::vector<std::string>(const Forgetting&)> on_forget;
  Result<std::vector<std::string>> made = std::vector<std::string>{};  // by initialize()
  std::function<void(std::function<void()>)> on_close;                 // default: done at once
  std::function<void()> on_destruction;

  std::vector<std::shared_ptr<Contend>> contends;
  std::vector<Renewal> renewals;  // those that no hook has answered
  std::vector<Release> releases;
  std::vector<Backend::Handler<LockInfo>> questions;  // of inspect()
  std::uint64_t asked = 0;
  std::list<std::shared_ptr<std::function<void()>>> watches;
  std::vector<Grant> released;  // the grant of every release, in order
  std::uint64_t renewals_asked = 0;
  bool close_asked = false;
  std::uint64_t last_token = 0;

 private:
  friend class FakeBackend;
  BackendHost* host_ = nullptr;
};

class FakeBackend final : public Backend {
 public:
  FakeBackend(std::shared_ptr<FakeService> service, BackendHost& host) : service_(std::move(service)) {
    service_->host_ = &host;
  }
  ~FakeBackend() override {
    service_->require_task();
    EXPECT_EQ(service_->live_contentions(), 0U) << "the backend goes before its contentions";
    if (service_->on_destruction) service_->on_destruction();
    service_->host_ = nullptr;
  }

  [[nodiscard]] Capabilities capabilities() const noexcept override { return service_->capabilities; }

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override {
    service_->require_task();
    auto contend = std::make_shared<FakeService::Contend>();
    contend->request = request;
    contend->sink = &sink;
    service_->contends.push_back(contend);
    auto contention = std::make_unique<FakeContention>(service_, contend);
    if (service_->on_contend) service_->on_contend(*contend);
    return contention;
  }

  void renew(const Grant& grant, RenewHandler done) override {
    service_->require_task();
    ++service_->renewals_asked;
    EXPECT_EQ(service_->capabilities.lease_kind, LeaseKind::per_lock) << "renewal of what has no lease of its own";
    EXPECT_TRUE(renewing_.insert(grant.owner).second) << "two renewals of a grant at a time";
    FakeService::Renewal renewal{grant, [this, owner = grant.owner, done = std::move(done)](RenewOutcome outcome) {
                                   renewing_.erase(owner);
                                   done(std::move(outcome));
                                 }};
    if (service_->on_renew) {
      service_->on_renew(renewal);
    } else {
      service_->renewals.push_back(std::move(renewal));
    }
  }

  void release(const Grant& grant, ReleaseHandler done) override {
    service_->require_task();
    EXPECT_TRUE(released_.insert(grant.owner).second) << "a grant was released twice";
    EXPECT_FALSE(closing_) << "a release after close()";
    service_->released.push_back(grant);
    FakeService::Release release{grant, std::move(done)};
    if (service_->on_release) {
      service_->on_release(release);
    } else {
      service_->releases.push_back(std::move(release));
    }
  }

  void inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) override {
    service_->require_task();
    if (!service_->capabilities.can_inspect) return Backend::inspect(kind, name, std::move(done));
    ++service_->asked;
    const auto answer = service_->on_inspect ? service_->on_inspect(name) : std::nullopt;
    if (answer) return done(*answer);
    service_->questions.push_back(std::move(done));
  }

  void initialize(Handler<std::vector<std::string>> done) override { done(service_->made); }
  void forget(const Forgetting& what, Handler<std::vector<std::string>> done) override {
    service_->on_forget ? done(service_->on_forget(what)) : Backend::forget(what, std::move(done));
  }

  [[nodiscard]] std::unique_ptr<Watch> watch(LockKind /*kind*/, const std::string& /*name*/,
                                             std::function<void()> changed) override {
    service_->require_task();
    return std::make_unique<FakeWatch>(service_, std::move(changed));
  }

  void close(std::function<void()> done) override {
    service_->require_task();
    EXPECT_EQ(service_->live_contentions(), 0U) << "close() before the contentions were given up";
    closing_ = true;
    service_->close_asked = true;
    if (service_->on_close) {
      service_->on_close(std::move(done));
    } else {
      done();
    }
  }

 private:
  class FakeContention final : public Contention {
   public:
    FakeContention(std::shared_ptr<FakeService> service, std::shared_ptr<FakeService::Contend> contend)
        : service_(std::move(service)), contend_(std::move(contend)) {}
    ~FakeContention() override {
      service_->require_task();
      EXPECT_FALSE(contend_->in_sink_call) << "a contention was destroyed inside a call to its sink";
      contend_->sink = nullptr;
    }

   private:
    std::shared_ptr<FakeService> service_;
    std::shared_ptr<FakeService::Contend> contend_;
  };

  class FakeWatch final : public Watch {
   public:
    FakeWatch(std::shared_ptr<FakeService> service, std::function<void()> changed)
        : service_(std::move(service)), changed_(std::make_shared<std::function<void()>>(std::move(changed))) {
      service_->watches.push_back(changed_);
    }
    ~FakeWatch() override {
      service_->require_task();
      EXPECT_TRUE(service_->has_backend()) << "the backend goes before a watch";
      service_->watches.remove(changed_);
    }

   private:
    std::shared_ptr<FakeService> service_;
    std::shared_ptr<std::function<void()>> changed_;
  };

  std::shared_ptr<FakeService> service_;
  std::unordered_set<OwnerId> renewing_;
  std::unordered_set<OwnerId> released_;
  bool closing_ = false;
};

inline BackendFactory FakeService::factory() {
  return [self = shared_from_this()](BackendHost& host, const BackendConfig&) -> std::unique_ptr<Backend> {
    return std::make_unique<FakeBackend>(self, host);
  };
}

}  // namespace dlock::test
