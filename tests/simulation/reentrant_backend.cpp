#include "tests/simulation/reentrant_backend.hpp"

#include <algorithm>

namespace dlock::simulation {

class ReentrantBackend::Attempt final : public GrantSink {
 public:
  using Start = std::function<std::unique_ptr<Contention>(Backend& inner, GrantSink& sink)>;
  Attempt(ReentrantBackend& backend, Start start, GrantSink& sink)
      : backend_(backend), start_(std::move(start)), sink_(&sink) {}

  void begin() {
    if (sink_ != nullptr) contention_ = start_(*backend_.inner_, *this);
  }
  // The core wants nothing more of it.
  void give_up() { sink_ = nullptr; }
  void destroy() { contention_.reset(); }

  // --- GrantSink ---
  void granted(Grant grant) override {
    if (sink_ == nullptr) return backend_.inner_->release(grant, [](const ReleaseOutcome&) {});
    report([&] { sink_->granted(std::move(grant)); });
  }
  void busy() override {
    report([&] { sink_->busy(); });
  }
  void unreachable(Failure why) override {
    EXPECT_TRUE(why.code) << "unreachable without a reason";
    report([&] { sink_->unreachable(std::move(why)); });
  }
  void failed(Failure why) override {
    EXPECT_TRUE(why.code) << "failed without a reason";
    report([&] { sink_->failed(std::move(why)); });
  }

 private:
  template <class Report>
  void report(Report to_core) {
    backend_.reporting_.push_back(this);
    backend_.around([this, &to_core] {
      if (sink_ != nullptr) to_core();
    })();
    backend_.reporting_.pop_back();
  }

  ReentrantBackend& backend_;
  const Start start_;
  GrantSink* sink_;
  std::unique_ptr<Contention> contention_;
};

class ReentrantBackend::Handle final : public Contention {
 public:
  Handle(ReentrantBackend& backend, std::shared_ptr<Attempt> attempt)
      : backend_(backend), attempt_(std::move(attempt)) {}
  ~Handle() override {
    attempt_->give_up();
    const Attempt* const which = attempt_.get();
    backend_.call({[attempt = std::move(attempt_)] { attempt->destroy(); }, which});
  }

 private:
  ReentrantBackend& backend_;
  std::shared_ptr<Attempt> attempt_;
};

std::unique_ptr<Contention> ReentrantBackend::contend(const LockRequest& request, GrantSink& sink) {
  return begin(std::make_shared<Attempt>(
      *this, [request](Backend& inner, GrantSink& outer) { return inner.contend(request, outer); }, sink));
}

std::unique_ptr<Contention> ReentrantBackend::begin(std::shared_ptr<Attempt> attempt) {
  call({[attempt] { attempt->begin(); }});
  return std::make_unique<Handle>(*this, std::move(attempt));
}

void ReentrantBackend::renew(const Grant& grant, RenewHandler done) {
  call({[this, grant, done = around(std::move(done))] { inner_->renew(grant, done); }});
}

void ReentrantBackend::release(const Grant& grant, ReleaseHandler done) {
  call({[this, grant, done = around(std::move(done))] { inner_->release(grant, done); }});
}

std::unique_ptr<Watch> ReentrantBackend::watch(LockKind kind, const std::string& name, std::function<void()> changed) {
  return inner_->watch(kind, name, around(std::move(changed)));
}

void ReentrantBackend::inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) {
  inner_->inspect(kind, name, around(std::move(done)));
}

void ReentrantBackend::list(LockKind kind, Handler<std::vector<LockInfo>> done) {
  inner_->list(kind, around(std::move(done)));
}

void ReentrantBackend::break_lock(LockKind kind, const std::string& name, Handler<bool> done) {
  inner_->break_lock(kind, name, around(std::move(done)));
}

void ReentrantBackend::forget(const Forgetting& what, Handler<std::vector<std::string>> done) {
  inner_->forget(what, around(std::move(done)));
}

void ReentrantBackend::close(std::function<void()> done) {
  later_.disarm();
  run_kept_back();
  inner_->close(std::move(done));
}

void ReentrantBackend::call(Call what) {
  const bool inside = std::find(reporting_.begin(), reporting_.end(), what.destroys) != reporting_.end();
  if (!inside && kept_back_.empty() && !dice_.chance(30)) return what.run();
  kept_back_.push_back(std::move(what));
  later_.arm(executor().now() + std::chrono::milliseconds(1), [this] { run_kept_back(); });
}

void ReentrantBackend::run_kept_back() {
  const auto may_run = [this](const Call& call) {
    return std::find(reporting_.begin(), reporting_.end(), call.destroys) == reporting_.end();
  };
  // The call may keep others back, or run them.
  for (auto next = std::ranges::find_if(kept_back_, may_run); next != kept_back_.end();
       next = std::ranges::find_if(kept_back_, may_run)) {
    const Call call = std::move(*next);
    kept_back_.erase(next);
    call.run();
  }
}

}  // namespace dlock::simulation
