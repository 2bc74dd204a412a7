#include "core/acquisition.hpp"

#include <string>
#include <utility>

#include "core/client_core.hpp"
#include "util/process.hpp"

namespace dlock::detail {

Acquisition::Acquisition(ClientCore& core, Id id, LockRequest request, AcquireOptions options, AcquireCompletion done)
    : core_(core),
      id_(id),
      request_(std::move(request)),
      options_(std::move(options)),
      done_(std::move(done)),
      started_(core.executor().now()),
      deadline_(started_, options_.wait.value(), core.response_timeout()),
      timer_(core.executor()) {}

Acquisition::~Acquisition() = default;

bool Acquisition::start() {
  if (options_.cancel.stop_requested()) {
    finish({nullptr, {errc::cancelled, "the wait for lock \"" + request_.name + "\" was cancelled"}});
    return true;
  }
  starting_ = true;
  contention_ = core_.backend().contend(request_, *this);
  starting_ = false;
  if (finished_) return true;
  arm_deadline();
  if (options_.cancel.stop_possible()) {
    on_cancel_.emplace(options_.cancel, [weak = core_.weak_from_this(), id = id_, in = util::fork_generation()] {
      if (util::fork_generation() != in) return;  // a forked child: the wait is its parent's
      if (const auto core = weak.lock()) core->cancel_acquire(id);
    });
  }
  return false;
}

void Acquisition::restart() {
  if (finished_) return;
  contention_.reset();
  request_.owner = core_.new_owner_id();
  starting_ = true;
  contention_ = core_.backend().contend(request_, *this);
  starting_ = false;
  if (finished_) {
    core_.forget_acquire_later(id_);
  } else {
    check_deadline();
  }
}

void Acquisition::abort(Failure why) {
  if (finished_) return;
  finish({nullptr, std::move(why)});
}

void Acquisition::granted(Grant grant) {
  if (finished_) {  // we had given up, and the contention did not know yet
    core_.release_unwanted(grant);
    return;
  }
  if (core_.executor().now() >= grant.valid_until) {
    // The answer took longer than the lease (we may have been suspended): there is nothing to rely on.
    core_.release_unwanted(grant);
    if (request_.wait) {
      core_.restart_acquire_later(id_);
    } else {
      abort({errc::unavailable, "the grant of lock \"" + request_.name + "\" came after its lease was over"});
    }
    return;
  }
  auto lease = core_.hold(grant, options_, started_);
  finish({std::move(lease), {}});
}

void Acquisition::busy() {
  if (finished_) return;
  deadline_.busy();
  if (!request_.wait) {
    finish({nullptr, deadline_.verdict(request_.name)});
    return;
  }
  check_deadline();
}

void Acquisition::unreachable(Failure why) {
  if (finished_) return;
  if (!why.code) why.code = errc::unavailable;
  // A wait without limit would otherwise hide the trouble from everybody.
  if (deadline_.unreachable(why)) core_.warn({request_.name, std::move(why)});
  check_deadline();
}

void Acquisition::failed(Failure why) {
  if (!why.code) why.code = errc::protocol;  // a failure without a code would look like success to the caller
  abort(std::move(why));
}

void Acquisition::check_deadline() {
  if (starting_) return;  // start() looks once the contention exists
  if (deadline_.over(core_.executor().now())) {
    finish({nullptr, deadline_.verdict(request_.name)});
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
    core_.executor().post([weak = core_.weak_from_this(), id = id_] {
      if (const auto core = weak.lock()) core->check_acquire_deadline(id);
    });
  });
}

void Acquisition::deadline_passed() {
  if (!finished_) check_deadline();
}

void Acquisition::finish(AcquireResult result) {
  finished_ = true;
  timer_.disarm();
  on_cancel_.reset();
  const auto done = std::move(done_);
  core_.acquire_ended(result, request_.wait);
  // Inside start() the core drops us right after; elsewhere a call to the sink may be below us on the stack. Before
  // anybody is told, so that what the caller asks next comes after the contention has given up.
  if (!starting_ && contention_) core_.forget_acquire_later(id_);
  done(std::move(result));
}

}  // namespace dlock::detail
