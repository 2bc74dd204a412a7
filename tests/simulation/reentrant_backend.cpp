#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>

#include "tests/simulation/process.hpp"

namespace dlock::simulation {
namespace {

// Keeps some of the core's calls back until the backend reports something. So contentions begin and are destroyed, and
// leases are renewed and released, inside any callback.
class ReentrantBackend final : public Backend, private BackendHost {
  // The callback, with calls that were kept back before it or behind it.
  template <class Callback>
  [[nodiscard]] auto around(Callback callback) {
    return [this, callback = std::move(callback)](auto&&... what) {
      ReentrantBackend& backend = *this;  // the call may end what owns this callback
      if (dice_.chance(50)) run_kept_back();
      callback(std::forward<decltype(what)>(what)...);
      backend.run_kept_back();
    };
  }

 public:
  ReentrantBackend(BackendHost& host, Dice& dice, const BackendMaker& make)
      : host_(host), dice_(dice), later_(host.executor()), inner_(make(*this)) {}

  [[nodiscard]] Capabilities capabilities() const noexcept override { return inner_->capabilities(); }
  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override {
    auto attempt = std::make_shared<Attempt>(*this, request, sink);
    call({[attempt] { attempt->begin(); }});
    return std::make_unique<Handle>(*this, std::move(attempt));
  }
  void renew(const Grant& grant, RenewHandler done) override {
    call({[this, grant, done = around(std::move(done))] { inner_->renew(grant, done); }});
  }
  void release(const Grant& grant, ReleaseHandler done) override {
    call({[this, grant, done = around(std::move(done))] { inner_->release(grant, done); }});
  }
  [[nodiscard]] std::unique_ptr<Watch> watch(LockKind kind, const std::string& name,
                                             std::function<void()> changed) override {
    return inner_->watch(kind, name, around(std::move(changed)));
  }
  void inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) override {
    inner_->inspect(kind, name, around(std::move(done)));
  }
  void list(LockKind kind, Handler<std::vector<LockInfo>> done) override {
    inner_->list(kind, around(std::move(done)));
  }
  void break_lock(LockKind kind, const std::string& name, Handler<bool> done) override {
    inner_->break_lock(kind, name, around(std::move(done)));
  }
  void forget(const Forgetting& what, Handler<std::vector<std::string>> done) override {
    inner_->forget(what, around(std::move(done)));
  }
  void close(std::function<void()> done) override {
    later_.disarm();
    run_kept_back();
    inner_->close(std::move(done));
  }

 private:
  class Attempt final : public GrantSink {
   public:
    Attempt(ReentrantBackend& backend, LockRequest request, GrantSink& sink)
        : backend_(backend), request_(std::move(request)), sink_(&sink) {}

    void begin() {
      if (sink_ != nullptr) contention_ = backend_.inner_->contend(request_, *this);
    }
    // The core wants nothing more of it.
    void give_up() { sink_ = nullptr; }
    void destroy() { contention_.reset(); }

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
    const LockRequest request_;
    GrantSink* sink_;
    std::unique_ptr<Contention> contention_;
  };

  class Handle final : public Contention {
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

  struct Call {
    std::function<void()> run;
    const Attempt* destroys = nullptr;
  };

  // Not inside a call to the sink of the attempt that it destroys.
  [[nodiscard]] bool may_run(const Call& call) const { return std::ranges::count(reporting_, call.destroys) == 0; }
  // Now, or inside a callback that comes soon. Calls keep their order.
  void call(Call what) {
    if (may_run(what) && kept_back_.empty() && !dice_.chance(30)) return what.run();
    kept_back_.push_back(std::move(what));
    later_.arm(executor().now() + std::chrono::milliseconds(1), [this] { run_kept_back(); });
  }
  // A call may keep others back, or run them.
  void run_kept_back() {
    const auto find = [this] {
      return std::ranges::find_if(kept_back_, [this](const Call& each) { return may_run(each); });
    };
    for (auto next = find(); next != kept_back_.end(); next = find()) {
      const Call call = std::move(*next);
      kept_back_.erase(next);
      call.run();
    }
  }

  // --- BackendHost ---
  [[nodiscard]] Executor& executor() noexcept override { return host_.executor(); }
  void extended(const OwnerId& owner, TimePoint valid_until) override {
    around([this](const auto&... what) { host_.extended(what...); })(owner, valid_until);
  }
  void lost(const OwnerId& owner, Failure why) override {
    EXPECT_TRUE(why.code) << "lost without a reason";
    around([this](const auto&... what) { host_.lost(what...); })(owner, std::move(why));
  }
  void connection(ConnectionEvent event) override { host_.connection(std::move(event)); }
  void warn(WarningEvent event) override { host_.warn(std::move(event)); }
  [[nodiscard]] OwnerId new_owner_id() override { return host_.new_owner_id(); }

  BackendHost& host_;
  Dice& dice_;
  Timer later_;
  std::vector<const Attempt*> reporting_;  // whose sinks are being called, outermost first
  std::unique_ptr<Backend> inner_;
  std::list<Call> kept_back_;
};

}  // namespace

std::unique_ptr<Backend> make_reentrant(BackendHost& host, Dice& dice, const BackendMaker& make) {
  return std::make_unique<ReentrantBackend>(host, dice, make);
}

}  // namespace dlock::simulation
