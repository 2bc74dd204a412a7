#include "engine/event_loop.hpp"

#include <algorithm>
#include <asio/post.hpp>
#include <memory>
#include <utility>

#include <dlock/duration.hpp>

#include "engine/hand_over.hpp"
#include "util/time_slice.hpp"

namespace dlock::engine {

namespace {

using namespace std::chrono_literals;

// User code runs in batches of limited size and time. Between two batches everything that is due runs: handlers, and
// with them timers, renewals and losses.
constexpr int most_in_a_batch = 64;
constexpr std::chrono::nanoseconds longest_batch = 500us;
constexpr std::chrono::nanoseconds longest_row_of_handlers = 500us;

thread_local bool is_own_thread = false;

}  // namespace

// --- The loop's own thread -------------------------------------------------------------------------------------------

bool EventLoop::on_an_own_thread() noexcept {
  return is_own_thread;
}

// Each round: a batch of user code, then handlers while this thread leads, else sleep.
void EventLoop::run() {
  own_thread_ = std::this_thread::get_id();
  is_own_thread = true;
  util::ask_for_short_time_slices();
  mutex_.lock();
  for (bool idle = false; !io_.stopped();) {
    run_user_code();
    const bool hurry = !user_code_.empty();  // it waits for its next batch
    if (leader_ == Leader::own_thread && idle && may_leave_lead()) {
      leader_ = Leader::nobody;
      last_led_ = Clock::now();
    }
    if (leader_ == Leader::nobody && must_lead()) leader_ = Leader::own_thread;
    if (leader_ != Leader::own_thread) {
      const auto since = leader_ == Leader::caller ? Clock::now() : last_led_;
      if (!hurry) (void)woken_.wait_until(mutex_, since + LeadPolicy::longest_gap);
      continue;
    }
    own_thread_called_ = false;
    // Ready handlers run before the loop is left alone, and before more user code.
    const bool only_ready = hurry || may_leave_lead();
    mutex_.unlock();
    hand_over();
    idle = !(only_ready ? run_ready_handlers() : io_.run_one() > 0);
    hand_over();
    mutex_.lock();
  }
  while (!user_code_.empty()) run_user_code();  // nothing else is left, and no more is accepted
  leader_ = Leader::nobody;
  own_thread_ = std::thread::id();  // another thread may get this one's id
  mutex_.unlock();
}

bool EventLoop::must_lead() const {
  return own_thread_called_ || posted_ > 0 || !user_code_.empty() ||
         Clock::now() >= last_led_ + LeadPolicy::longest_gap;
}

bool EventLoop::may_leave_lead() const {
  return !stopping_ && policy_.own_thread_may_leave(Clock::now());
}

// Returns whether there was one. Stops early for a loss signal.
bool EventLoop::run_ready_handlers() {
  const auto end = Clock::now() + longest_row_of_handlers;
  bool ran = false;
  while (io_.poll_one() > 0) {
    ran = true;
    if (loss_signalled_ || Clock::now() >= end) break;
  }
  return ran;
}

// One batch.
void EventLoop::run_user_code() {
  loss_signalled_ = false;
  if (user_code_.empty()) return;
  const auto end = Clock::now() + longest_batch;
  for (int left = most_in_a_batch; left > 0; --left) {
    Task code = user_code_.pop();
    mutex_.unlock();
    code();
    code = nullptr;  // what it holds is the user's, too
    hand_over();
    mutex_.lock();
    wake_caller();
    if (user_code_.empty() || Clock::now() >= end) return;
  }
}

void EventLoop::call_own_thread() {
  own_thread_called_ = true;
  woken_.notify_one();
}

// --- Work for it -----------------------------------------------------------------------------------------------------

void EventLoop::post(Task handler) noexcept {
  asio::post(io_, [this, handler = std::move(handler)]() noexcept {
    --posted_;
    handler();
  });
  hand_over();
  ++posted_;  // the handler may have counted down already: then this makes it zero
  hand_over();
  const util::MutexLock lock(mutex_);
  if (leader_ == Leader::nobody) call_own_thread();
}

Notified EventLoop::notify(Task&& user_code, UserCode kind, bool although_stopping) {
  hand_over();
  const util::MutexLock lock(mutex_);
  if (stopping_ && !although_stopping) return Notified::stopped;
  if (!user_code_.push(kind, std::move(user_code))) return Notified::refused;
  if (kind == UserCode::loss_signal) loss_signalled_ = true;
  if (leader_ != Leader::own_thread) {
    woken_.notify_one();
  } else if (!on_own_thread()) {
    asio::post(io_, [] {});
  }
  return Notified::accepted;
}

// Loss signals go before completions.
void EventLoop::drain_user_code() {
  (void)wait_behind(UserCode::completion);
  // Refused: the queue of events is full. One of them runs with each completion.
  while (wait_behind(UserCode::event) == Notified::refused) (void)wait_behind(UserCode::completion);
}

// Returns when the queued code of this kind has run.
Notified EventLoop::wait_behind(UserCode kind) {
  const auto reached = std::make_shared<util::Event>();
  const Notified answer = notify([reached] { reached->set(); }, kind);
  if (answer == Notified::accepted) (void)reached->wait();  // true, because it has no limit
  return answer;
}

void EventLoop::stop() {
  const util::MutexLock lock(mutex_);
  stopping_ = true;
  call_own_thread();
}

// --- Callers that wait -----------------------------------------------------------------------------------------------

// Also ends the wait if the thread is cancelled.
class EventLoop::Waiting {
 public:
  Waiting(EventLoop& loop, const util::Event& event) : loop_(loop), leads_(loop.come(event)), led_(leads_) {}
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    hand_over();
    const util::MutexLock lock(loop_.mutex_);
    if (leads_) loop_.leave_lead();
    loop_.policy_.went(led_, start_, Clock::now());
    loop_.waiting_ = loop_.policy_.waiting();
  }

  void leave_lead() {
    hand_over();
    const util::MutexLock lock(loop_.mutex_);
    leads_ = false;
    loop_.leave_lead();
  }
  [[nodiscard]] bool leads() const noexcept { return leads_; }
  [[nodiscard]] Clock::time_point start() const noexcept { return start_; }

 private:
  EventLoop& loop_;
  const Clock::time_point start_ = Clock::now();
  bool leads_;
  const bool led_;
};

bool EventLoop::wait(util::Event& event, std::optional<std::chrono::nanoseconds> limit) {
  if (event.is_set()) return true;
  hand_over();
  Waiting waiting(*this, event);
  hand_over();
  const auto end = limit ? saturating_add(waiting.start(), *limit) : Clock::time_point::max();
  if (waiting.leads()) {
    lead_until(event, std::min(end, waiting.start() + LeadPolicy::longest_lead));
    if (event.is_set()) return true;
    waiting.leave_lead();
  }
  return limit ? event.wait(std::max(end - Clock::now(), Clock::duration::zero())) : event.wait();
}

// Answers whether the caller leads now.
bool EventLoop::come(const util::Event& event) {
  const util::MutexLock lock(mutex_);
  policy_.came(event);
  waiting_ = policy_.waiting();
  if (leader_ != Leader::nobody) return false;
  if (waiting_ > 1 || stopping_) {
    call_own_thread();
    return false;
  }
  leader_ = Leader::caller;
  led_for_ = &event;
  caller_ = std::this_thread::get_id();
  return true;
}

void EventLoop::lead_until(const util::Event& event, Clock::time_point end) {
  const auto begin = Clock::now();
  auto now = begin;
  for (; !event.is_set() && !io_.stopped() && now < end; now = Clock::now()) {
    hand_over();
    if (now - begin >= polling_.duration()) {
      (void)io_.run_one_until(end);
    } else if (io_.poll_one() == 0) {
      std::this_thread::yield();
    }
  }
  polling_.waited(now - begin);
}

void EventLoop::leave_lead() {
  leader_ = Leader::nobody;
  caller_ = std::thread::id();
  last_led_ = Clock::now();
  if (waiting_ > 1 || stopping_ || posted_ > 0 || !led_for_->is_set()) call_own_thread();
}

// Either this sees the caller, or the caller sees its event: events and caller_ are in one total order.
void EventLoop::look_again() {
  hand_over();
  if (const auto caller = caller_.load(); caller == std::thread::id() || caller == std::this_thread::get_id()) return;
  hand_over();
  const util::MutexLock lock(mutex_);
  wake_caller();
}

void EventLoop::wake_caller() {
  if (leader_ == Leader::caller && led_for_->is_set()) asio::post(io_, [] {});
}

}  // namespace dlock::engine
