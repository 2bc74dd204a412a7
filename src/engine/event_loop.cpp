#include "engine/event_loop.hpp"

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include <dlock/duration.hpp>

namespace dlock::engine {

namespace {

using namespace std::chrono_literals;

// A caller that waits for longer had better sleep, and leave the loop to a thread that is there for it.
constexpr std::chrono::nanoseconds longest_lead = 2ms;
constexpr std::chrono::nanoseconds shortest_polling = 10us;
constexpr std::chrono::nanoseconds longest_polling = 100us;
// How long nobody may look at the loop, between callers that lead in turn: the price is that much more delay of what
// happens meanwhile.
constexpr std::chrono::nanoseconds longest_gap = 500us;
// After so many callers that had the loop to themselves, the own thread makes way for the next.
constexpr int alone_enough = 3;
// User code runs in batches of at most so many, or of so much time. Between two of them whatever is due goes first:
// handlers, and with them timers, renewals and losses.
constexpr int most_in_a_batch = 64;
constexpr std::chrono::nanoseconds longest_batch = 500us;
constexpr std::size_t most_handlers_in_a_row = 1024;
// A thread that runs at this moment on another processor needs a microsecond for what a sleep and a wake-up would take
// several for.
constexpr int spins = 24;

void pause_processor() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

// --- The loop's own thread -------------------------------------------------------------------------------------------

void EventLoop::run() {
  own_thread_ = std::this_thread::get_id();
  mutex_.lock();
  while (true) {
    await_lead();
    if (ended_) break;
    leader_ = Leader::own_thread;
    const bool hurry = user_code_waits();
    mutex_.unlock();
    lead(hurry);
    mutex_.lock();
  }
  mutex_.unlock();
}

// Returns when it is this thread's turn to lead, or when there is nothing left to do.
void EventLoop::await_lead() {
  const auto parked = Clock::now();
  while (true) {
    if (ended_) return;
    run_user_code();
    const auto now = Clock::now();
    auto until = now + longest_gap;
    if (leader_ == Leader::nobody) {
      until = std::max(parked, last_led_) + longest_gap;
      if (wanted_ || posted_ > 0 || user_code_waits() || now >= until) return;
    }
    if (!user_code_waits()) (void)parked_.wait_until(mutex_, until);
  }
}

// `hurry`: user code waits for its next batch.
void EventLoop::lead(bool hurry) {
  for (bool leaving = false;;) {
    // What is ready is done before the loop is left alone, and before more user code.
    const bool idle = (hurry || leaving ? run_what_is_ready() : io_.run_one()) == 0;
    const util::MutexLock lock(mutex_);
    run_user_code();
    wanted_ = false;
    ended_ = io_.stopped();
    if (ended_) run_all_user_code();
    if (ended_ || (leaving && idle && may_leave())) {
      leader_ = Leader::nobody;
      return;
    }
    leaving = may_leave();
    hurry = user_code_waits();
  }
}

std::size_t EventLoop::run_what_is_ready() {
  std::size_t ran = 0;
  while (ran < most_handlers_in_a_row && io_.poll_one() > 0) ++ran;
  return ran;
}

// Callers come and go one by one, and nobody is left who sleeps until this thread has read an answer.
bool EventLoop::may_leave() const {
  if (!make_way_ || stopping_) return false;
  if (waiting_ == 0) return Clock::now() - last_left_ < longest_gap;
  return waiting_ == 1 && sleeper_ != nullptr && sleeper_->is_set();
}

EventLoop::Task EventLoop::next_user_code() {
  auto& queue = loss_signals_.empty() ? user_code_ : loss_signals_;
  Task code = std::move(queue.front());
  queue.pop_front();
  return code;
}

// One batch.
void EventLoop::run_user_code() {
  if (!user_code_waits()) return;
  const auto end = Clock::now() + longest_batch;
  for (int left = most_in_a_batch; left > 0; --left) {
    Task code = next_user_code();
    mutex_.unlock();
    code();
    code = nullptr;  // what it holds is the user's, too
    mutex_.lock();
    if (!user_code_waits() || Clock::now() >= end) return;
  }
}

// Nothing else is left to do, and none of it is accepted any more.
void EventLoop::run_all_user_code() {
  while (user_code_waits()) run_user_code();
}

void EventLoop::call_own_thread() {
  wanted_ = true;
  parked_.notify_one();
}

// --- Work for it -----------------------------------------------------------------------------------------------------

void EventLoop::post(Task handler) {
  asio::post(io_, [this, handler = std::move(handler)]() noexcept {
    --posted_;
    handler();
  });
  ++posted_;  // may have begun already: then the two meet at zero
  const util::MutexLock lock(mutex_);
  if (leader_ == Leader::nobody) call_own_thread();
}

bool EventLoop::notify(Task user_code, bool although_stopping, UserCode kind) {
  const util::MutexLock lock(mutex_);
  if (stopping_ && !although_stopping) return false;
  (kind == UserCode::loss_signal ? loss_signals_ : user_code_).push_back(std::move(user_code));
  if (leader_ != Leader::own_thread) {
    parked_.notify_one();
  } else if (!on_own_thread()) {
    asio::post(io_, [] {});
  }
  return true;
}

void EventLoop::stop() {
  const util::MutexLock lock(mutex_);
  stopping_ = true;
  call_own_thread();
}

// --- Callers that wait -----------------------------------------------------------------------------------------------

// Both also when the thread is cancelled while it waits.
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
  for (int i = 0; i < spins; ++i) {
    if (event.is_set()) return true;
    pause_processor();
  }
  const Waiting waiting(*this, event);
  const auto end = limit ? saturating_add(waiting.start(), *limit) : Clock::time_point::max();
  if (waiting.leads()) {
    const Leading leading(*this, event);
    lead_until(event, std::min(end, waiting.start() + longest_lead));
  }
  if (event.is_set()) return true;
  return limit ? event.wait(std::max(end - Clock::now(), Clock::duration::zero())) : event.wait();
}

bool EventLoop::take_lead(const util::Event& event) {
  const util::MutexLock lock(mutex_);
  ++waiting_;
  sleeper_ = waiting_ == 1 ? &event : nullptr;
  if (waiting_ > 1) {
    alone_ = 0;
    make_way_ = false;
  }
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

// An answer that comes soon is polled for: falling asleep and being woken takes longer than such an answer. Whether to
// expect one is learnt from the waits before, as a hypervisor does it with idle processors (KVM's halt polling).
void EventLoop::lead_until(const util::Event& event, Clock::time_point end) {
  const auto begin = Clock::now();
  auto now = begin;
  for (; !event.is_set() && !io_.stopped() && now < end; now = Clock::now()) {
    if (now - begin >= polling_) {
      (void)io_.run_one_until(end);
    } else if (io_.poll_one() == 0) {
      std::this_thread::yield();
    }
  }
  const auto took = now - begin;
  if (took > longest_polling) {
    polling_ = 0ns;
  } else if (took > polling_) {
    polling_ = std::clamp<std::chrono::nanoseconds>(polling_ * 2, shortest_polling, longest_polling);
  }
}

void EventLoop::leave_lead(const util::Event& event) {
  const util::MutexLock lock(mutex_);
  leader_ = Leader::nobody;
  led_for_ = nullptr;
  caller_leads_ = false;
  last_led_ = Clock::now();
  if (waiting_ > 1 || stopping_ || posted_ > 0 || !event.is_set()) call_own_thread();
}

void EventLoop::waited(bool led, Clock::time_point since) {
  const util::MutexLock lock(mutex_);
  --waiting_;
  sleeper_ = nullptr;
  last_left_ = Clock::now();
  const bool briefly = !led && last_left_ - since < longest_lead;
  if (briefly && waiting_ == 0 && ++alone_ >= alone_enough) make_way_ = true;
}

void EventLoop::look_again() {
  // Either this sees the caller, or the caller sees its event: events and this flag are in one total order.
  if (!caller_leads_) return;
  const util::MutexLock lock(mutex_);
  if (leader_ == Leader::caller && led_for_->is_set()) asio::post(io_, [] {});
}

}  // namespace dlock::engine
