#include "backends/postgres/session_locks/for_update.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <dlock/duration.hpp>

#include "backends/postgres/session_locks/for_update_contention.hpp"
#include "backends/postgres/sql/sqlstate.hpp"
#include "util/duration_text.hpp"
#include "util/names.hpp"

namespace dlock::postgres {

namespace {

// A client that wants a lock, and may hold others already, has to be able to ask for it.
Turns::Spare kept_for_tries(std::size_t connections) {
  return {.by_all = 1, .by_others = connections / 2};
}

}  // namespace

// --- A lock that is held ---------------------------------------------------------------------------------------------

class ForUpdateLocks::Hold final : private Session::User {
 public:
  Hold(ForUpdateLocks& locks, const Grant& grant, Transactions::Member member)
      : locks_(locks),
        name_(grant.name),
        owner_(grant.owner),
        valid_until_(grant.valid_until),
        member_(std::move(member)) {
    member_->hand_over(*this);
  }

  [[nodiscard]] Transactions::Member take_member() { return std::move(member_); }

 private:
  void session_ready() override {}
  void session_alive(TimePoint sent) override {
    // Its holder may have been told already that it expired; then no owner would release the row.
    if (may_be_over(valid_until_, locks_.executor().now())) {
      return locks_.lose(owner_, {errc::lost, "PostgreSQL did not answer before the lease of lock " +
                                                  util::quoted(name_) + " expired"});
    }
    valid_until_ = std::max(valid_until_, lease_valid_until(sent, locks_.services().options.lease));
    locks_.services().host.extended(owner_, valid_until_);
  }
  void session_down(const Failure& why, bool /*was_ready*/) override {
    locks_.transactions().broken(why);
    locks_.lose(owner_,
                {errc::lost, "the transaction that held lock " + util::quoted(name_) + " is lost: " + why.detail});
  }

  ForUpdateLocks& locks_;
  const std::string name_;
  const OwnerId owner_;
  TimePoint valid_until_;
  Transactions::Member member_;
};

// --- All of them -----------------------------------------------------------------------------------------------------

ForUpdateLocks::ForUpdateLocks(const Services& services)
    : services_(services),
      statements_(for_update_statements(services.options.schema, services.options.durability)),
      transactions_(services_, statements_.rollback, [this] { turns_.room(); }),
      turns_(services_.host.executor(), services_.options.max_connections,
             kept_for_tries(services_.options.max_connections), {}, [this] {
               const auto taken = static_cast<std::int64_t>(holds_.size() + turns_.inside());
               return static_cast<std::int64_t>(transactions_.limit()) - taken;
             }) {
  if (FullServer* const full = services_.dialling.full) {
    full->holds_if([this] { return !holds_.empty(); });
  }
}

ForUpdateLocks::~ForUpdateLocks() = default;

void ForUpdateLocks::watch_snapshots() {
  snapshot_watch_.emplace(executor(),
                          SnapshotWatch::Waits{[this] { return turns_.inside(); }, [this] { turns_.end_waits(); }},
                          [&commands = services_.commands](Query query) {
                            commands.run(std::move(query), commands.answer_by(), MissingSchema::refuse, true);
                          });
  turns_.when_let_in([this] { snapshot_watch_->began(); });
}

Capabilities ForUpdateLocks::capabilities() const noexcept {
  return {
      .backend = "postgresql",
      .strategy = to_string(Strategy::for_update),
      .scope = Scope::network,
      .lease_kind = LeaseKind::session,
      .fencing = FencingDurability::wall_clock,
      // Waiters are served in their order, but a newcomer may come in between, and waits are interrupted.
      .fair = false,
      .wakes_waiters = true,
      .wakes_one = true,
      .counts_waiters = true,
      .max_locks = services_.options.max_connections,
      .can_inspect = true,
      .can_list = true,
      .can_break = true,
      .can_forget = true,
      .can_forget_idle = true,
      .min_lease = shortest_session_lease,
      .max_lease = services_.options.lease,
  };
}

std::unique_ptr<Contention> ForUpdateLocks::contend(const LockRequest& request, GrantSink& sink) {
  if (request.lease > services_.options.lease) {
    sink.failed({errc::invalid_argument,
                 "lease: " + util::to_text(request.lease) +
                     " is longer than the transaction lasts without its client; raise lease in the URL above " +
                     util::to_text(services_.options.lease)});
    return std::make_unique<Contention>();
  }
  auto contention = std::make_unique<RowContention>(*this, request, sink);
  contention->start();
  return contention;
}

void ForUpdateLocks::hold(const Grant& grant, Transactions::Member member) {
  holds_.insert_or_assign(grant.owner, std::make_unique<Hold>(*this, grant, std::move(member)));
  connection_wanted();
}

void ForUpdateLocks::release(const Grant& grant, ReleaseHandler done) {
  using Status = ReleaseOutcome::Status;
  const auto found = holds_.find(grant.owner);
  if (found == holds_.end()) return done({.status = Status::not_owner});
  auto member = found->second->take_member();
  holds_.erase(found);
  transactions_.end(std::move(member), statements_.commit,
                    [this, name = grant.name, done = std::move(done)](const Outcome& outcome) {
                      if (is_end_of_session(outcome)) return done({.status = Status::not_owner});
                      switch (outcome.problem) {
                        case Problem::none:
                          turns_.freed(name);
                          return done({.status = Status::released});
                        case Problem::not_sent:  // because the transaction was lost before
                          return done({.status = Status::not_owner});
                        case Problem::unknown_outcome:
                        case Problem::refused:  // the connection is closed, and the row free with it
                          return done({.status = Status::failed, .failure = outcome.failure});
                      }
                    });
}

void ForUpdateLocks::connection_wanted() {
  if (transactions_.applicants() == 0) return;
  // Those that are asking or ending give theirs back by themselves, and soon.
  if (transactions_.size() <= holds_.size() + turns_.connected()) (void)turns_.make_room();
}

void ForUpdateLocks::lose(OwnerId owner, Failure why) {
  const auto found = holds_.find(owner);
  if (found == holds_.end()) return;
  const auto hold = std::move(found->second);
  holds_.erase(found);
  transactions_.close(hold->take_member());
  services_.host.lost(owner, std::move(why));
}

}  // namespace dlock::postgres
