#include "bench/scenarios/recovery.hpp"

#include <algorithm>
#include <csignal>
#include <future>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <dlock/dlock.hpp>

#include "bench/measure/random.hpp"
#include "bench/scenarios/work.hpp"
#include "torture/rig/url_text.hpp"

namespace dlock::bench {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// As short as a careful user would choose. For locks that last as long as a session, the server may require more.
constexpr seconds shortest_lease{2};
// The longest time for the holder to start and to get a free lock.
constexpr seconds time_to_start{20};
constexpr milliseconds usual_start{50};
// More than the waiter needs to join the queue, wherever it is.
constexpr milliseconds time_to_queue{200};
// How long after the end of a dead holder's lease the lock may remain held.
constexpr seconds grace{30};

// How the holder and the waiter are started. The lease in the URL is the client's, which is that of its session; that
// of an acquire counts if each lock has its own lease.
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
  if (!url.parameter("lease")) url.set("lease", terms.lease_text());  // otherwise the user has chosen it
  terms.url = url.text();
  return terms;
}

bool has_token(std::string_view printed) {
  for (auto end = printed.find('\n'); end != std::string_view::npos; end = printed.find('\n')) {
    const std::string_view line = printed.substr(0, end);
    if (!line.empty() && line.find_first_not_of("0123456789") == std::string_view::npos) return true;
    printed.remove_prefix(end + 1);
  }
  return false;
}

// The result of an acquire.
struct Ended {
  Clock::time_point time;
  std::error_code error;
  Lease lease;
};

// A stop cancels it.
std::future<Ended> start_waiting(DistributedLock& lock, const std::stop_token& stop) {
  const auto promise = std::make_shared<std::promise<Ended>>();
  lock.async_acquire({.cancel = stop}, [promise](std::error_code ec, Lease lease) {
    promise->set_value({.time = Clock::now(), .error = ec, .lease = std::move(lease)});
  });
  return promise->get_future();
}

// Waits until the acquire has ended, at most until then. Throws if it failed; a stop is no failure.
bool has_ended(std::future<Ended>& waiting, Clock::time_point limit) {
  return waiting.wait_until(limit) == std::future_status::ready;
}

void require_granted(const Ended& ended) {
  if (ended.error) throw std::runtime_error("waiting for the lock failed: " + ended.error.message());
}

// nullopt: a stop was requested.
std::optional<Clock::duration> kill_once(const Plan& plan, const Terms& terms, const Client& client, milliseconds lease,
                                         nanoseconds until_kill, const std::stop_token& stop) {
  const std::string name = lock_name("recovery");
  // The URL goes into the environment, where other users do not see it.
  rig::ChildProcess holder({plan.dlock_program, "hold", "--quiet", "--lease", terms.lease_text(), name},
                           {"DLOCK_URL=" + terms.url});
  if (!await_token(holder, time_to_start, stop)) return std::nullopt;
  DistributedLock lock = client.make_lock(name);
  std::future<Ended> waiting = start_waiting(lock, stop);
  const bool ended_early = has_ended(waiting, Clock::now() + time_to_queue + until_kill);
  if (stop.stop_requested()) return std::nullopt;
  if (ended_early) {
    require_granted(waiting.get());
    throw std::runtime_error("the lock could be acquired while another process held it");
  }
  const auto killed = Clock::now();
  holder.signal(SIGKILL);
  (void)holder.wait();
  const bool ended = has_ended(waiting, killed + 2 * lease + grace);
  if (stop.stop_requested()) return std::nullopt;
  if (!ended) throw std::runtime_error("the lock of a holder that was killed did not become free");
  Ended granted = waiting.get();
  require_granted(granted);
  release(granted.lease);
  return granted.time - killed;
}

}  // namespace

bool await_token(const rig::ChildProcess& holder, nanoseconds limit, const std::stop_token& stop) {
  if (holder.wait_until(has_token, limit, stop)) return true;
  if (stop.stop_requested()) return false;
  const char* const why = holder.output_ended() ? "the holder ended: " : "the holder did not get the lock in time: ";
  std::string said = holder.output();
  while (said.ends_with('\n')) said.pop_back();
  throw std::runtime_error(why + said);
}

nanoseconds time_of_recovery(const Capabilities& capabilities) {
  const bool at_once = capabilities.lease_kind == LeaseKind::process;
  return (at_once ? nanoseconds(0) : nanoseconds(shortest_lease)) + time_to_queue + usual_start;
}

Rounds recovery(const Target& target, const Plan& plan, const std::stop_token& stop) {
  const Terms terms = terms_for(target);
  const auto client = std::make_shared<const Client>(connect(terms.url));
  const milliseconds lease = granted_lease(*client, lock_name("recovery"), {.lease = terms.lease, .cancel = stop});
  return [&plan, terms, client, lease, random = Random(1)](int /*repeat*/, const std::stop_token& cancel) mutable {
    // The rest of the lease at the kill depends on the last renewal, which is due every third of the lease.
    const auto until_kill = std::chrono::duration_cast<nanoseconds>(uniform(random) * lease / 3);
    const auto taken = kill_once(plan, terms, *client, lease, until_kill, cancel);
    Round round;
    round.lease = lease;
    round.window.complete = taken.has_value();
    if (taken) round.window.samples.add(*taken);
    return round;
  };
}

}  // namespace dlock::bench
