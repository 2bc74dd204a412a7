#include "core/client/acquisition.hpp"

#include <algorithm>
#include <utility>

#include "core/client/blocking.hpp"
#include "core/client/client_core.hpp"
#include "core/client/failures.hpp"
#include "core/client/lease_record.hpp"
#include "util/names.hpp"
#include "util/process.hpp"

namespace dlock::detail {

Acquisition::Acquisition(std::shared_ptr<ClientCore> core, const Target& target, AcquireOptions options,
                         AcquireCompletion done)
    : core_(std::move(core)),
      options_(std::move(options)),
      request_(request(target)),
      done_(std::move(done)),
      started_(core_->executor().now()),
      deadline_(started_, options_.wait.value(), core_->context().response_timeout),
      timer_(core_->executor()) {}

Acquisition::~Acquisition() = default;

LockRequest Acquisition::request(const Target& target) const {
  return {.name = target.name,
          .owner = {},
          .holder = core_->context().holder,
          .lease = options_.lease ? options_.lease->value() : core_->context().lease,
          .wait = options_.wait > Duration(),
          .kind = target.kind,
          .mode = target.mode,
          .permits = target.permits,
          .value = std::string(target.value)};
}

// --- Any thread ------------------------------------------------------------------------------------------------------

std::optional<Failure> Acquisition::problem() const {
  if (core_->context().foreign_process()) return failures::forked();
  if (options_.wait < Duration()) return Failure{errc::invalid_argument, "wait: negative or not a number"};
  if (auto problem = util::problem_with_value(request_.value)) {
    return Failure{errc::invalid_argument, *std::move(problem)};
  }
  return options_.lease ? core_->context().problem_with_lease(options_.lease->value()) : std::nullopt;
}

void Acquisition::begin(engine::IfBusy if_busy) {
  if (auto why = problem()) return answer({nullptr, std::move(*why)});
  const bool accepted = core_->engine().dispatch([self = shared_from_this()] { self->start(); }, if_busy);
  if (!accepted) answer({nullptr, failures::closed()});
}

Failure Acquisition::run() {
  if (core_->engine().must_not_block()) {
    if (auto why = problem()) return *std::move(why);
    return core_->closing() ? failures::closed() : would_deadlock();
  }
  begin(core_->if_busy());
  core_->engine().wait(ended_);
  return std::move(failure_);
}

void Acquisition::cancel() {
  core_->executor().post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->abort({errc::cancelled, "the wait was cancelled"});
  });
}

// --- In tasks --------------------------------------------------------------------------------------------------------

void Acquisition::start() {
  if (core_->closing()) return answer({nullptr, failures::closed()});
  add(core_->counters().waiting);
  if (options_.cancel.stop_requested()) {
    return finish(
        {nullptr, {errc::cancelled, "the wait for " + described(request_.kind, request_.name) + " was cancelled"}});
  }
  contend();
  if (finished_) return end_contention();
  core_->keep(shared_from_this());
  arm_deadline();
  if (options_.cancel.stop_possible()) {
    on_cancel_.emplace(options_.cancel, [weak = weak_from_this(), in = util::fork_generation()] {
      if (util::fork_generation() != in) return;  // a forked child: the wait is its parent's
      if (const auto self = weak.lock()) self->cancel();
    });
  }
}

void Acquisition::contend() {
  request_.owner = core_->new_owner_id();
  contending_ = true;
  contention_ = core_->backend().contend(request_, *this);
  contending_ = false;
}

// Starts over with a new owner, after a grant that came too late to be of use.
void Acquisition::restart() {
  if (finished_) return;
  end_contention();
  contend();
  if (finished_) {
    core_->forget(*this);
  } else {
    check_deadline();
  }
}

void Acquisition::abort(Failure why) {
  if (!finished_) finish({nullptr, std::move(why)});
}

void Acquisition::end_contention() noexcept {
  contention_.reset();
}

void Acquisition::granted(Grant grant) {
  if (finished_) {  // the acquire was given up, and the contention did not know yet
    core_->leases().release_unwanted(grant);
    return;
  }
  if (core_->executor().now() >= grant.valid_until) {
    // The answer took longer than the lease, perhaps because this process was suspended: the grant is of no use.
    core_->leases().release_unwanted(grant);
    if (!request_.wait) {
      return abort({errc::unavailable,
                    "the grant of " + described(request_.kind, request_.name) + " came after its lease had expired"});
    }
    core_->executor().post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->restart();
    });
    return;
  }
  auto lease = core_->leases().hold(std::move(grant), options_, started_);
  finish({std::move(lease), {}});
}

void Acquisition::busy() {
  if (finished_) return;
  deadline_.busy();
  if (!request_.wait) {
    finish({nullptr, deadline_.verdict(described(request_.kind, request_.name))});
    return;
  }
  check_deadline();
}

void Acquisition::unreachable(Failure why) {
  if (finished_) return;
  if (!why.code) why.code = errc::unavailable;
  // Otherwise a wait without limit would never report the problem.
  if (deadline_.unreachable(why)) core_->warn({request_.name, std::move(why)});
  check_deadline();
}

void Acquisition::failed(Failure why) {
  if (!why.code) why.code = errc::protocol;  // a failure without a code would look like success to the caller
  // If another lease holds the lock, the backend calls busy().
  if (why.code == errc::timed_out) why.code = errc::unavailable;
  abort(std::move(why));
}

void Acquisition::check_deadline() {
  if (contending_ || finished_) return;  // start() checks once the contention exists
  if (deadline_.over(core_->executor().now())) {
    finish({nullptr, deadline_.verdict(described(request_.kind, request_.name))});
  } else {
    arm_deadline();
  }
}

void Acquisition::arm_deadline() {
  const TimePoint wake = deadline_.wake();
  if (timer_.armed() && wake == armed_for_) return;
  armed_for_ = wake;
  if (wake == TimePoint::max()) {
    timer_.disarm();
    return;
  }
  timer_.arm(wake, [this] {
    // An answer that is due at the same instant goes first.
    core_->executor().post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->check_deadline();
    });
  });
}

void Acquisition::finish(AcquireResult result) {
  finished_ = true;
  timer_.disarm();
  on_cancel_.reset();
  core_->acquire_ended(result, request_.wait);
  // The contention may be on the call stack, so a later task destroys it; that task is posted before the caller is
  // answered, so that the caller's next request comes after the contention has given up.
  if (!contending_ && contention_) core_->forget_later(*this);
  answer(std::move(result));
}

void Acquisition::answer(AcquireResult result) {
  if (done_) {
    const auto done = std::move(done_);
    return done(std::move(result));
  }
  if (result.lease) lease_ = LeaseRecord::make_lease(std::move(result.lease));
  failure_ = std::move(result.failure);
  ended_.set();
}

std::shared_ptr<Acquisition> start_acquire(std::shared_ptr<ClientCore> core, const Target& target,
                                           AcquireOptions options, AcquireCompletion done, engine::IfBusy if_busy) {
  auto acquisition = std::make_shared<Acquisition>(std::move(core), target, std::move(options), std::move(done));
  acquisition->begin(if_busy);
  return acquisition;
}

}  // namespace dlock::detail
