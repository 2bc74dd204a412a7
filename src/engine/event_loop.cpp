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
    mutex_.unlock();
    lead();
    mutex_.lock();
    leader_ = Leader::nobody;
  }
  mutex_.unlock();
}

// Returns when it is this thread's turn to lead, or when there is nothing left to do.
void EventLoop::await_lead() {
  const auto parked = Clock::now();
  while (true) {
    run_user_code();
    if (ended_) return;
    const auto now = Clock::now();
    auto until = now + longest_gap;
    if (leader_ == Leader::nobody) {
      until = std::max(parked, last_led_) + longest_gap;
      if (wanted_ || posted_ > 0 || now >= until) return;
    }
    (void)parked_.wait_until(mutex_, until);
  }
}

void EventLoop::lead() {
  while (true) {
    const bool over = io_.run_one() == 0;
    const util::MutexLock lock(mutex_);
    run_user_code();
    wanted_ = false;
    ended_ = over;
    if (over || may_leave()) return;
  }
}

// Nobody is left who sleeps until this thread has read an answer.
bool EventLoop::may_leave() const {
  const bool all_answered = waiting_ == 0 || (waiting_ == 1 && sleeper_ != nullptr && sleeper_->is_set());
  return make_way_ && all_answered && !stopping_;
}

void EventLoop::run_user_code() {
  while (!user_code_.empty()) {
    Task code = std::move(user_code_.front());
    user_code_.pop_front();
    mutex_.unlock();
    code();
    code = nullptr;  // what it holds is the user's, too
    mutex_.lock();
  }
}

void EventLoop::call_own_thread() {
  wanted_ = true;
  parked_.notify_one();
}

// --- Work for it -----------------------------------------------------------------------------------------------------

void EventLoop::post(Task handler) {
  ++posted_;
  asio::post(io_, [this, handler = std::move(handler)] {
    --posted_;
    handler();
  });
  const util::MutexLock lock(mutex_);
  if (leader_ == Leader::nobody) call_own_thread();
}

bool EventLoop::notify(Task user_code, bool although_stopping) {
  const util::MutexLock lock(mutex_);
  if (stopping_ && !although_stopping) return false;
  user_code_.push_back(std::move(user_code));
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

bool EventLoop::wait(util::Event& event, std::optional<std::chrono::nanoseconds> limit) {
  for (int i = 0; i < spins; ++i) {
    if (event.is_set()) return true;
    pause_processor();
  }
  const auto start = Clock::now();
  const auto end = limit ? saturating_add(start, *limit) : Clock::time_point::max();
  const bool leads = take_lead(event);
  if (leads) {
    lead_until(event, std::min(end, start + longest_lead));
    leave_lead(event);
  }
  bool set = event.is_set();
  if (!set) set = limit ? event.wait(std::max(end - Clock::now(), Clock::duration::zero())) : event.wait();
  waited(!leads && Clock::now() - start < longest_lead);
  return set;
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

void EventLoop::waited(bool briefly_for_own_thread) {
  const util::MutexLock lock(mutex_);
  --waiting_;
  sleeper_ = nullptr;
  if (briefly_for_own_thread && waiting_ == 0 && ++alone_ >= alone_enough) make_way_ = true;
}

void EventLoop::look_again() {
  // Either this sees the caller, or the caller sees its event: events and this flag are in one total order.
  if (!caller_leads_) return;
  const util::MutexLock lock(mutex_);
  if (leader_ == Leader::caller && led_for_->is_set()) asio::post(io_, [] {});
}

}  // namespace dlock::engine
