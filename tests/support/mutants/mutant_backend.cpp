#include "tests/support/mutants/mutant_backend.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>

namespace dlock::mutants {

// Each client may have its own thread.
struct Service {
  std::mutex mutex;
  std::vector<Grant> readers;                  // whose leases are renewed together with those of others
  std::set<std::string> entered;               // locks that a waiting reader has got
  std::map<std::string, std::size_t> counted;  // the permits in use when a client last asked
};

std::shared_ptr<Service> make_service() {
  return std::make_shared<Service>();
}

namespace {

using namespace std::chrono_literals;

class MutantBackend final : public Backend {
 public:
  MutantBackend(BackendHost& host, const BackendConfig& config, Mutation mutation,
                std::shared_ptr<memory::MemoryStore> store, std::shared_ptr<Service> service,
                const BackendFactory& correct)
      : host_(host),
        service_(std::move(service)),
        store_(std::move(store)),
        disturbed_(config.holder.find(":disturbed") != std::string::npos),
        mutation_(mutation),
        correct_(correct(host, config)) {}

  [[nodiscard]] Capabilities capabilities() const noexcept override { return correct_->capabilities(); }
  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override;
  void renew(const Grant& grant, RenewHandler done) override;
  void release(const Grant& grant, ReleaseHandler done) override;
  [[nodiscard]] std::unique_ptr<Watch> watch(LockKind kind, const std::string& name,
                                             std::function<void()> changed) override {
    return correct_->watch(kind, key(name), std::move(changed));
  }
  void diagnose(Handler<std::vector<Finding>> done) override { correct_->diagnose(std::move(done)); }
  void inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) override {
    correct_->inspect(kind, key(name), done);
  }
  void list(LockKind kind, Handler<std::vector<LockInfo>> done) override { correct_->list(kind, std::move(done)); }
  void break_lock(LockKind kind, const std::string& name, Handler<bool> done) override {
    correct_->break_lock(kind, key(name), done);
  }
  void forget(const Forgetting& what, Handler<std::vector<std::string>> done) override {
    correct_->forget({.name = what.name.empty() ? "" : key(what.name), .idle = what.idle, .kind = what.kind}, done);
  }
  void close(std::function<void()> done) override { correct_->close(std::move(done)); }

 private:
  class Acquire;
  class Request;

  [[nodiscard]] bool is(Mutation mutation) const noexcept { return mutation_ == mutation; }
  [[nodiscard]] std::string key(std::string name) const;
  [[nodiscard]] static std::chrono::nanoseconds margin_of(std::chrono::nanoseconds lease) {
    return TimePoint(lease) - lease_valid_until(TimePoint(), lease);
  }
  // The time for which the service is requested to keep a lock.
  [[nodiscard]] std::chrono::nanoseconds kept_for(std::chrono::nanoseconds lease) const;
  [[nodiscard]] Grant with_key(Grant grant) const;
  void send(Request& request);

  // For mutations of locks with several holders.
  [[nodiscard]] std::vector<HolderInfo> holders(const LockRequest& request) const {
    return store_->inspect(request.kind, request.name, host_.executor().clock()).holders;
  }
  [[nodiscard]] bool seems_free(const LockRequest& request);
  void keep_with_others(const Grant& grant);
  void renew_others(const Grant& grant);

  BackendHost& host_;
  const std::shared_ptr<Service> service_;
  const std::shared_ptr<memory::MemoryStore> store_;
  bool denied_ = false;   // a try ended without the lock
  const bool disturbed_;  // a client whose connection a test may cut
  const Mutation mutation_;
  const std::unique_ptr<Backend> correct_;
  std::vector<Request*> waiting_;  // in the order of their arrival
};

// The acquire of the core.
class MutantBackend::Acquire final : public Contention {
 public:
  Acquire(MutantBackend& owner, const LockRequest& asked, GrantSink& out);
  ~Acquire() override;

  MutantBackend& backend;
  GrantSink& sink;
  std::unique_ptr<Request> request;
};

// The request to the correct backend.
class MutantBackend::Request final : public GrantSink {
 public:
  Request(MutantBackend& backend, const LockRequest& what, Acquire& whose)
      : asked(what), acquire(&whose), backend_(backend) {
    backend_.waiting_.push_back(this);
  }
  ~Request() { std::erase(backend_.waiting_, this); }

  void granted(Grant grant) override {
    over = true;
    std::erase(backend_.waiting_, this);
    if (waited_ && backend_.is(Mutation::lost_wake_up)) return;
    if (waited_ && asked.mode == Mode::shared && backend_.is(Mutation::one_reader_enters) && !is_first_reader()) return;
    if (asked.mode == Mode::shared && backend_.is(Mutation::shared_expiry)) backend_.keep_with_others(grant);
    if (backend_.is(Mutation::last_comes_first)) change_places_with_the_last();
    if (backend_.is(Mutation::token_repeats)) grant.token = FencingToken(grant.token.value() >> 20U << 20U);
    if (backend_.is(Mutation::late_grant)) {
      grant.valid_until = lease_valid_until(backend_.host_.executor().now(), asked.lease);
    }
    if (backend_.is(Mutation::late_loss)) grant.valid_until += asked.lease;
    if (backend_.is(Mutation::no_drift_margin)) grant.valid_until += margin_of(asked.lease);
    if (backend_.is(Mutation::token_of_wall_clock)) {
      const auto wall = backend_.host_.executor().clock().wall_now().time_since_epoch();
      grant.token =
          FencingToken(static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(wall).count()));
    }
    // The program counts the lease that it requested.
    grant.valid_until += asked.lease - backend_.kept_for(asked.lease);
    grant.name = asked.name;
    grant.lease = asked.lease;
    acquire->sink.granted(std::move(grant));
  }

  void busy() override {
    waited_ = true;
    if (asked.mode == Mode::exclusive && backend_.is(Mutation::writer_out_of_line)) {
      (void)backend_.store_->release(asked.kind, asked.name, asked.owner, backend_.host_.executor().clock());
    }
    if (asked.wait) return acquire->sink.busy();
    backend_.denied_ = true;
    if (backend_.is(Mutation::busy_is_error)) return failed({errc::unavailable, "somebody else holds the lock"});
    if (!backend_.is(Mutation::two_holders) && !room && !jumps_queue()) return acquire->sink.busy();
    take_over(FencingToken(1));
  }

  void unreachable(Failure why) override { acquire->sink.unreachable(std::move(why)); }

  void failed(Failure why) override {
    over = true;
    if (backend_.is(Mutation::failure_is_busy)) return acquire->sink.busy();
    acquire->sink.failed(std::move(why));
  }

  // A mutation granted it.
  void take_over(FencingToken token) {
    granted({.name = asked.name,
             .owner = asked.owner,
             .token = token,
             .valid_until = lease_valid_until(backend_.host_.executor().now(), asked.lease),
             .kind = asked.kind,
             .mode = asked.mode});
  }

  const LockRequest asked;
  std::unique_ptr<Timer> second_step;
  Acquire* acquire;
  bool over = false;
  bool room = false;  // there seems to be a free permit
  std::unique_ptr<Contention> contention;

 private:
  [[nodiscard]] bool is_first_reader() {
    const std::scoped_lock guard(backend_.service_->mutex);
    return backend_.service_->entered.insert(asked.name).second;
  }
  [[nodiscard]] bool jumps_queue() const {
    if (!backend_.is(Mutation::reader_jumps_queue) || asked.mode != Mode::shared) return false;
    const auto holders = backend_.holders(asked);
    return !holders.empty() && holders.front().mode == Mode::shared;
  }
  void change_places_with_the_last() {
    const auto last = std::find_if(backend_.waiting_.rbegin(), backend_.waiting_.rend(),
                                   [this](const Request* each) { return each->asked.name == asked.name; });
    if (last == backend_.waiting_.rend()) return;
    std::swap(acquire->request, (*last)->acquire->request);
    std::swap(acquire, (*last)->acquire);
  }

  MutantBackend& backend_;
  bool waited_ = false;
};

MutantBackend::Acquire::Acquire(MutantBackend& owner, const LockRequest& asked, GrantSink& out)
    : backend(owner), sink(out), request(std::make_unique<Request>(owner, asked, *this)) {}

MutantBackend::Acquire::~Acquire() {
  const bool forgets =
      backend.is(Mutation::residue_on_give_up) || (backend.is(Mutation::forgotten_clean_up) && backend.disturbed_);
  if (request->over || !request->asked.wait || !forgets) return;
  LockRequest left = request->asked;
  left.owner = backend.host_.new_owner_id();
  const auto ignore = [](const memory::MemoryStore::Answer&) {};
  (void)backend.store_->enqueue(left, ignore, backend.host_.executor().clock());
}

std::string MutantBackend::key(std::string name) const {
  if (is(Mutation::folded_case)) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  }
  if (is(Mutation::decoded_name)) {
    for (auto at = name.find("%2F"); at != std::string::npos; at = name.find("%2F")) name.replace(at, 3, "/");
  }
  return name;
}

Grant MutantBackend::with_key(Grant grant) const {
  grant.name = key(grant.name);
  return grant;
}

void MutantBackend::send(Request& request) {
  LockRequest sent = request.asked;
  sent.name = key(sent.name);
  sent.lease = kept_for(sent.lease);
  request.room = is(Mutation::stale_count) && seems_free(sent);
  if (sent.kind == LockKind::election && is(Mutation::two_step_election) && holders(sent).empty()) {
    request.second_step = std::make_unique<Timer>(host_.executor());
    return request.second_step->arm(host_.executor().now() + 10ms, [this, &request, sent] {
      while (store_->break_lock(sent.kind, sent.name, host_.executor().clock())) {
        // waiters are granted it in between
      }
      request.take_over(store_->try_acquire(sent, {}, host_.executor().clock()).token);
    });
  }
  request.contention = correct_->contend(sent, request);
}

std::chrono::nanoseconds MutantBackend::kept_for(std::chrono::nanoseconds lease) const {
  if (is(Mutation::immortal_lease)) return 1h;
  return is(Mutation::early_expiry) ? lease / 2 : lease;
}

// Decides by the count at the last request.
bool MutantBackend::seems_free(const LockRequest& request) {
  if (request.kind != LockKind::semaphore) return false;
  const std::size_t out = holders(request).size();
  const std::scoped_lock guard(service_->mutex);
  return std::exchange(service_->counted[request.name], out) < request.permits;
}

// The lease of a reader that may die is kept for as long as other readers renew theirs.
void MutantBackend::keep_with_others(const Grant& grant) {
  if (!disturbed_) return;
  Grant kept = grant;
  kept.owner = host_.new_owner_id();
  (void)store_->try_acquire({.name = kept.name,
                             .owner = kept.owner,
                             .holder = "kept",
                             .lease = kept.lease,
                             .kind = kept.kind,
                             .mode = kept.mode},
                            {}, host_.executor().clock());
  const std::scoped_lock guard(service_->mutex);
  service_->readers.push_back(std::move(kept));
}

void MutantBackend::renew_others(const Grant& grant) {
  const std::scoped_lock guard(service_->mutex);
  for (const Grant& other : service_->readers) {
    if (other.name == grant.name) (void)store_->renew(other, host_.executor().clock());
  }
}

std::unique_ptr<Contention> MutantBackend::contend(const LockRequest& request, GrantSink& sink) {
  if (is(Mutation::blocks)) std::promise<void>().get_future().wait();
  auto acquire = std::make_unique<Acquire>(*this, request, sink);
  send(*acquire->request);
  return acquire;
}

void MutantBackend::renew(const Grant& grant, RenewHandler done) {
  if (grant.mode == Mode::shared && is(Mutation::shared_expiry)) renew_others(grant);
  Grant sent = with_key(grant);
  if (is(Mutation::immortal_lease)) sent.lease = kept_for(sent.lease);
  correct_->renew(sent, [this, grant, done = std::move(done)](RenewOutcome outcome) {
    using Status = RenewOutcome::Status;
    if (outcome.status == Status::lost && (is(Mutation::renewal_revives) || is(Mutation::renewal_lies))) {
      outcome = {Status::renewed, lease_valid_until(host_.executor().now(), grant.lease), {}};
      if (is(Mutation::renewal_revives)) {
        const LockRequest again{.name = grant.name, .owner = grant.owner, .holder = "revived", .lease = grant.lease};
        (void)store_->try_acquire(again, {}, host_.executor().clock());
      }
    }
    if (is(Mutation::renewal_refused)) outcome = {Status::lost, {}, {}};
    if (is(Mutation::late_renewal)) outcome.valid_until = lease_valid_until(host_.executor().now(), grant.lease);
    if (is(Mutation::immortal_lease)) outcome.valid_until += grant.lease - kept_for(grant.lease);
    if (is(Mutation::late_loss)) outcome.valid_until += grant.lease;
    if (is(Mutation::no_drift_margin)) outcome.valid_until += margin_of(grant.lease);
    done(std::move(outcome));
  });
}

void MutantBackend::release(const Grant& grant, ReleaseHandler done) {
  using Status = ReleaseOutcome::Status;
  if (is(Mutation::release_waits_for_lease)) return done({Status::released, {}});
  if (is(Mutation::some_kept) && denied_) return done({Status::released, {}});
  if (is(Mutation::blind_release)) {
    return correct_->break_lock(grant.kind, grant.name, [done = std::move(done)](const Result<bool>&) {
      done({Status::released, {}});
    });
  }
  correct_->release(with_key(grant), [this, grant, done = std::move(done)](ReleaseOutcome outcome) {
    if (outcome.status == Status::not_owner && is(Mutation::permit_of_another)) {
      outcome.status = Status::released;
      (void)store_->break_lock(grant.kind, grant.name, host_.executor().clock());
    }
    if (outcome.status == Status::not_owner && is(Mutation::release_lies)) outcome.status = Status::released;
    done(std::move(outcome));
  });
}

}  // namespace

std::unique_ptr<Backend> make_mutant(BackendHost& host, const BackendConfig& config, Mutation mutation,
                                     std::shared_ptr<memory::MemoryStore> store, std::shared_ptr<Service> service,
                                     const BackendFactory& correct) {
  return std::make_unique<MutantBackend>(host, config, mutation, std::move(store), std::move(service), correct);
}

}  // namespace dlock::mutants
