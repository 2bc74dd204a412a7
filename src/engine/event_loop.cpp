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

// User code runs in batches of limited number and time. Between two of them whatever is due goes first:
// handlers, and with them timers, renewals and losses.
constexpr int most_in_a_batch = 64;
constexpr std::chrono::nanoseconds longest_batch = 500us;
constexpr std::chrono::nanoseconds longest_row_of_handlers = 500us;

thread_local bool is_own_thread = false;

}  // namespace

// --- The loop's own thread -------------------------------------------------------------------------------------------

bool EventLoop::on_an_own_thread() noexcept {
  return is_own_thread;
}

void EventLoop::run() {
  own_thread_ = std::this_thread::get_id();
  is_own_thread = true;
  util::ask_for_short_time_slices();
  mutex_.lock();
  while (true) {
    sleep_until_lead();
    if (ended_) break;
    leader_ = Leader::own_thread;
    const bool hurry = !user_code_.empty();
    mutex_.unlock();
    hand_over();
    lead(hurry);
    mutex_.lock();
  }
  mutex_.unlock();
}

// Returns when it is this thread's turn to lead, or when there is nothing left to do.
void EventLoop::sleep_until_lead() {
  const auto since = Clock::now();
  while (!ended_) {
    run_user_code();
    const auto now = Clock::now();
    auto until = now + LeadPolicy::longest_gap;
    if (leader_ == Leader::nobody) {
      until = std::max(since, last_led_) + LeadPolicy::longest_gap;
      if (own_thread_called_ || posted_ > 0 || !user_code_.empty() || now >= until) return;
    }
    if (user_code_.empty()) (void)woken_.wait_until(mutex_, until);
  }
}

// `hurry`: user code waits for its next batch.
void EventLoop::lead(bool hurry) {
  for (bool leaving = false;;) {
    // Ready handlers run before the loop is left alone, and before more user code.
    const bool idle = !(hurry || leaving ? run_what_is_ready() : run_next());
    hand_over();
    const util::MutexLock lock(mutex_);
    run_user_code();
    own_thread_called_ = false;
    ended_ = io_.stopped();
    while (ended_ && !user_code_.empty()) run_user_code();  // nothing else is left, and no more is accepted
    if (ended_ || (leaving && idle && may_leave_lead())) {
      leader_ = Leader::nobody;
      return;
    }
    leaving = may_leave_lead();
    hurry = !user_code_.empty();
  }
}

// Waits for the next handler. Where callers wait for answers, it looks for a while before it falls asleep.
bool EventLoop::run_next() {
  if (waiting_ == 0) return io_.run_one() > 0;
  const auto start = Clock::now();
  handler_began_.reset();
  bool ran = false;
  for (auto now = start; !ran && !io_.stopped() && now - start < own_polling_.duration(); now = Clock::now()) {
    hand_over();
    ran = io_.poll_one() > 0;
    if (!ran) std::this_thread::yield();
  }
  hand_over();
  if (!ran) ran = io_.run_one() > 0;
  own_polling_.waited(handler_began_.value_or(Clock::now()) - start);
  return ran;
}

void EventLoop::handler_begins() noexcept {
  if (on_own_thread() && !handler_began_) handler_began_ = Clock::now();
}

// Answers whether there was something. Loss signals do not wait for all of it.
bool EventLoop::run_what_is_ready() {
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
    run_unlocked(user_code_.pop());
    if (user_code_.empty() || Clock::now() >= end) return;
  }
}

void EventLoop::run_loss_signals() {
  if (!on_own_thread()) return;
  const util::MutexLock lock(mutex_);
  while (Task code = user_code_.pop_loss_signal()) run_unlocked(std::move(code));
}

void EventLoop::run_unlocked(Task code) {
  mutex_.unlock();
  code();
  code = nullptr;  // what it holds is the user's, too
  hand_over();
  mutex_.lock();
}

void EventLoop::call_own_thread() {
  own_thread_called_ = true;
  woken_.notify_one();
}

// --- Work for it -----------------------------------------------------------------------------------------------------

void EventLoop::post(Task handler) {
  asio::post(io_, [this, handler = std::move(handler)]() noexcept {
    --posted_;
    handler();
  });
  hand_over();
  ++posted_;  // may have begun already: then the two meet at zero
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
  // Refused: as many events wait as may. One of them runs beside each completion.
  while (wait_behind(UserCode::event) == Notified::refused) (void)wait_behind(UserCode::completion);
}

// Returns when what waits of this kind has run.
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

// These two also end the wait if the thread is cancelled.
class EventLoop::Waiting {
 public:
  Waiting(EventLoop& loop, const util::Event& event) : loop_(loop), leads_(loop.take_lead(event)) {}
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() { loop_.waited(leads_, start_); }
  [[nodiscard]] bool leads() const noexcept { return leads_; }
  [[nodiscard]] Clock::time_point start() const noexcept { return start_; }

 private:
  EventLoop& loop_;
  const Clock::time_point start_ = Clock::now();
  const bool leads_;
};

class EventLoop::Leading {
 public:
  Leading(EventLoop& loop, const util::Event& event) noexcept : loop_(loop), event_(event) {}
  Leading(const Leading&) = delete;
  Leading& operator=(const Leading&) = delete;
  ~Leading() { loop_.leave_lead(event_); }

 private:
  EventLoop& loop_;
  const util::Event& event_;
};

bool EventLoop::wait(util::Event& event, std::optional<std::chrono::nanoseconds> limit) {
  if (event.is_set()) return true;
  hand_over();
  const Waiting waiting(*this, event);
  hand_over();
  const auto end = limit ? saturating_add(waiting.start(), *limit) : Clock::time_point::max();
  if (waiting.leads()) {
    const Leading leading(*this, event);
    lead_until(event, std::min(end, waiting.start() + LeadPolicy::longest_lead));
  }
  if (event.is_set()) return true;
  return limit ? event.wait(std::max(end - Clock::now(), Clock::duration::zero())) : event.wait();
}

bool EventLoop::take_lead(const util::Event& event) {
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
  caller_leads_ = true;
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

void EventLoop::leave_lead(const util::Event& event) {
  hand_over();
  const util::MutexLock lock(mutex_);
  leader_ = Leader::nobody;
  led_for_ = nullptr;
  caller_leads_ = false;
  last_led_ = Clock::now();
  if (waiting_ > 1 || stopping_ || posted_ > 0 || !event.is_set()) call_own_thread();
}

void EventLoop::waited(bool led, Clock::time_point since) {
  hand_over();
  const util::MutexLock lock(mutex_);
  policy_.went(led, since, Clock::now());
  waiting_ = policy_.waiting();
}

void EventLoop::look_again() {
  // Either this sees the caller, or the caller sees its event: events and this flag are in one total order.
  hand_over();
  if (!caller_leads_) return;
  hand_over();
  const util::MutexLock lock(mutex_);
  if (leader_ == Leader::caller && led_for_->is_set()) asio::post(io_, [] {});
}

}  // namespace dlock::engine
