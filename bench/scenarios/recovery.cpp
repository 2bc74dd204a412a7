#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include <dlock/dlock.hpp>

#include "bench/measure/random.hpp"
#include "bench/scenarios/holder_process.hpp"
#include "bench/scenarios/pairs.hpp"
#include "bench/scenarios/parts.hpp"
#include "bench/scenarios/scenario.hpp"
#include "torture/rig/url_text.hpp"

namespace dlock::bench {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// As short as a careful user would choose it. Where locks live as long as a session, the server may insist on more.
constexpr seconds shortest_lease{2};
// How long the holder may take to start and to get a free lock.
constexpr seconds time_to_start{20};
constexpr milliseconds usual_start{50};
// More than the waiter needs to stand in line, wherever it is.
constexpr milliseconds time_to_queue{200};
// How long after a dead holder's lease the lock may stay taken.
constexpr seconds grace{30};

// What the holder and the waiter are started with. The lease in the URL is the client's, which counts for its session;
// that of an acquire counts where each lock has a lease of its own.
struct Terms {
  std::string url;
  milliseconds lease;

  [[nodiscard]] std::string lease_text() const { return std::to_string(lease.count()) + "ms"; }
};

Terms terms_for(const Target& target) {
  const Capabilities capabilities = target.connect(1, {.lease = shortest_lease}).capabilities();
  const auto lease = std::clamp<nanoseconds>(shortest_lease, capabilities.min_lease, capabilities.max_lease);
  Terms terms{.url = target.url(1), .lease = std::chrono::ceil<milliseconds>(lease)};
  rig::UrlText url(terms.url);
  if (!url.parameter("lease")) url.set("lease", terms.lease_text());  // else the user wants it as it is
  terms.url = url.text();
  return terms;
}

// An acquire that another thread waits for.
class Waiter {
 public:
  explicit Waiter(const Client& client, const std::string& name) : lock_(client.make_lock(name)) {
    lock_.async_acquire({.cancel = cancel_.get_token()}, [shared = shared_](std::error_code ec, Lease lease) {
      const auto now = Clock::now();
      const std::scoped_lock lock(shared->mutex);
      shared->ended = now;
      shared->error = ec;
      shared->lease = std::move(lease);
      shared->changed.notify_all();
    });
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() { cancel_.request_stop(); }

  // When it got the lock, which it gives back. Nothing: a stop was requested before.
  std::optional<Clock::time_point> finish(Clock::time_point limit, const std::stop_token& stop) {
    std::unique_lock lock(shared_->mutex);
    const bool ended = shared_->changed.wait_until(lock, stop, limit, [&] { return shared_->ended.has_value(); });
    if (!ended && stop.stop_requested()) return std::nullopt;
    if (!ended) throw std::runtime_error("the lock of a holder that was killed did not become free");
    if (shared_->error) throw std::runtime_error("waiting for the lock failed: " + shared_->error.message());
    Lease lease = std::move(shared_->lease);
    const auto got_it = shared_->ended;
    lock.unlock();
    release(lease);
    return got_it;
  }
  // Waits until then without getting the lock; a grant is an error. False: a stop was requested before.
  bool wait_in_vain(Clock::time_point time, const std::stop_token& stop) {
    std::unique_lock lock(shared_->mutex);
    const bool ended = shared_->changed.wait_until(lock, stop, time, [&] { return shared_->ended.has_value(); });
    if (ended && shared_->error) throw std::runtime_error("waiting for the lock failed: " + shared_->error.message());
    if (ended) throw std::runtime_error("the lock could be acquired while another process held it");
    return !stop.stop_requested();
  }

 private:
  struct Shared {
    std::mutex mutex;  // guards what follows
    std::condition_variable_any changed;
    std::optional<Clock::time_point> ended;
    std::error_code error;
    Lease lease;
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::stop_source cancel_;
  DistributedLock lock_;
};

// Nothing: a stop was requested.
std::optional<Clock::duration> kill_once(const Plan& plan, const Terms& terms, const Client& client, milliseconds lease,
                                         nanoseconds until_kill, const std::stop_token& stop) {
  const std::string name = lock_name("recovery");
  HolderProcess holder(plan.dlock_program, terms.url, terms.lease_text(), name);
  if (!holder.await_lock(time_to_start, stop)) return std::nullopt;
  Waiter waiter(client, name);
  if (!waiter.wait_in_vain(Clock::now() + time_to_queue + until_kill, stop)) return std::nullopt;
  const auto killed = Clock::now();
  holder.kill();
  const auto got_it = waiter.finish(killed + 2 * lease + grace, stop);
  if (!got_it) return std::nullopt;
  return *got_it - killed;
}

std::vector<Measurement> measure_recovery(Target& target, const Plan& plan, const std::stop_token& stop) {
  const Terms terms = terms_for(target);
  const Client client = connect(terms.url);
  const milliseconds lease = granted_lease(client, lock_name("recovery"), {.lease = terms.lease, .cancel = stop});
  const Subject subject{scenario::recovery, {{parameter::lease_ms, static_cast<double>(lease.count())}}};
  Collector collector(target, subject, Who::dlock);
  Random random(1);
  Samples all;
  for (int i = 0; i < plan.kills; ++i) {
    // What is left of the lease when the holder dies depends on when it was renewed last, which it is every third of
    // it.
    const auto until_kill = std::chrono::duration_cast<nanoseconds>(uniform(random) * lease / 3);
    const auto taken = kill_once(plan, terms, client, lease, until_kill, stop);
    if (!taken) break;
    Samples one;
    one.add(*taken);
    collector.add(one, {quantity::p50});
    all.add(one);
  }
  if (all.empty()) return {};
  collector.add(all, {quantity::longest});
  collector.keep(all);
  return measurements_of({&collector, 1});
}

}  // namespace

std::vector<Step> recovery_steps(Target& target, const Plan& plan) {
  if (plan.dlock_program.empty() || plan.kills <= 0) return {};
  const Capabilities capabilities = target.connect(1).capabilities();
  if (capabilities.scope == Scope::process) return {};
  const nanoseconds until_free =
      capabilities.lease_kind == LeaseKind::process ? nanoseconds(0) : nanoseconds(shortest_lease);
  return {{.what = "recovery, " + std::to_string(plan.kills) + (plan.kills == 1 ? " holder" : " holders") + " killed",
           .scenario = scenario::recovery,
           .expected = plan.kills * (until_free + time_to_queue + usual_start),
           .run = [&target, &plan](const std::stop_token& stop) { return measure_recovery(target, plan, stop); }}};
}

}  // namespace dlock::bench
