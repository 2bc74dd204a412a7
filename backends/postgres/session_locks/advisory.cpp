#include "backends/postgres/session_locks/advisory.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "util/duration_text.hpp"

namespace dlock::postgres {

AdvisoryLocks::AdvisoryLocks(const Services& services)
    : AdvisoryLocks(
          services.host, services.options, services.dialling,
          [&schema = services.schema](TimePoint deadline, Schema::Handler done) {
            schema.set_up(deadline, std::move(done));
          },
          Limits{}) {}

AdvisoryLocks::AdvisoryLocks(BackendHost& host, const Options& options, const Dialling& dialling,
                             AdvisoryContention::SetUp set_up, Limits limits)
    : options_(options),
      sql_(options),
      room_(host, options, dialling, sql_, limits.slices, [this] { report_if_quiet(); }),
      // Each connection of the room has one at most.
      most_locks_(limits.locks - std::min<std::size_t>(limits.locks - 1, options.max_connections)),
      holders_(host, options, dialling, sql_, limits.sessions, most_locks_, [this] { report_if_quiet(); }),
      common_{.executor = host.executor(),
              .holders = holders_,
              .room = room_,
              .set_up = std::move(set_up),
              .response_timeout = dialling.response_timeout} {
  if (dialling.full == nullptr) return;
  dialling.full->holds_if([this] { return holders_.holds_any() || room_.holds_any(); });
}

AdvisoryLocks::~AdvisoryLocks() = default;

void AdvisoryLocks::watch_snapshots() {
  Turns& turns = room_.turns();
  snapshot_watch_.emplace(common_.executor,
                          SnapshotWatch::Waits{[&turns] { return turns.inside(); }, [&turns] { turns.end_waits(); }},
                          [this](Query query) { holders_.ask(std::move(query)); });
  turns.when_let_in([this] { snapshot_watch_->began(); });
}

Capabilities AdvisoryLocks::capabilities() const noexcept {
  return {
      .backend = "postgresql",
      .strategy = "advisory",
      .scope = Scope::network,
      .lease_kind = LeaseKind::session,
      .fencing = FencingDurability::wall_clock,
      .fair = true,
      .wakes_waiters = true,
      .wakes_one = true,
      .counts_waiters = true,
      .max_locks = static_cast<std::uint32_t>(most_locks_),
      .read_write_locks = true,
      .elections = true,
      .can_inspect = true,
      .can_list = true,
      .can_break = true,
      .can_forget = true,
      .can_forget_idle = true,
      .min_lease = shortest_session_lease,
      .max_lease = options_.lease,
  };
}

std::optional<Failure> AdvisoryLocks::problem_with(const LockRequest& request) const {
  if (request.lease <= options_.lease) return std::nullopt;
  return Failure{errc::invalid_argument,
                 "lease: " + util::to_text(request.lease) +
                     " is longer than the session lasts without its client; raise lease in the URL above " +
                     util::to_text(options_.lease)};
}

std::unique_ptr<Contention> AdvisoryLocks::contend(const LockRequest& request, GrantSink& sink) {
  if (auto problem = problem_with(request)) {
    sink.failed(*std::move(problem));
    return std::make_unique<Contention>();
  }
  auto contention = std::make_unique<AdvisoryContention>(
      common_, request, lock_key(options_, request.name, request.kind, request.mode), sink);
  contention->start();
  return contention;
}

void AdvisoryLocks::release(const Grant& grant, ReleaseHandler done) {
  if (holders_.release(grant.owner, done)) {
    if (room_.has_queue()) room_.freed(lock_key(options_, grant.name, grant.kind));
    return;
  }
  if (room_.release(grant.owner, done)) return;
  done({.status = ReleaseOutcome::Status::not_owner});
}

std::size_t AdvisoryLocks::waiting_here(LockKind kind, const std::string& name) const {
  return room_.queueing(lock_key(options_, name, kind));
}

void AdvisoryLocks::close(std::function<void()> done) {
  closed_ = std::move(done);
  report_if_quiet();
}

void AdvisoryLocks::report_if_quiet() {
  if (!closed_ || !holders_.quiet() || !room_.quiet()) return;
  const auto closed = std::exchange(closed_, nullptr);
  closed();
}

}  // namespace dlock::postgres
