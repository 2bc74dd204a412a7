#include "backends/file/waiters.hpp"

#include <sys/inotify.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include <dlock/spi/backoff.hpp>

namespace dlock::file {

namespace {

using std::chrono::milliseconds;

// Every clean release closes a writable descriptor, and so does the kernel for a holder that dies.
constexpr std::uint32_t file_replaced = IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;
constexpr std::uint32_t file_events = IN_CLOSE_WRITE | file_replaced;
// A new leader writes its record: observers of the election are notified.
constexpr std::uint32_t election_events = file_events | IN_MODIFY;
constexpr std::uint32_t watch_gone = IN_IGNORED | IN_UNMOUNT | IN_Q_OVERFLOW;

// For a dying holder the kernel reports the closed descriptor first and removes the lock a moment later.
constexpr std::array recheck_delays = {milliseconds(1), milliseconds(4), milliseconds(16), milliseconds(64)};

constexpr milliseconds poll_min(50);
constexpr milliseconds poll_max(150);

}  // namespace

// One waiter's place in the queue.
struct FileWatch final : Watch {
  FileWatch(Waiters& all, Name& lock_name, Mode as, std::function<void()> f)
      : waiters(all),
        name(lock_name),
        mode(as),
        changed(std::make_shared<const std::function<void()>>(std::move(f))),
        woken_in_round(all.round_),
        place(name.waiters.insert(name.waiters.end(), this)) {}
  ~FileWatch() override { waiters.remove(*this); }

  Waiters& waiters;
  Name& name;
  const Mode mode;
  const std::shared_ptr<const std::function<void()>> changed;  // shared, because a waiter may end while it is called
  std::uint64_t woken_in_round;                                // of Waiters::round_
  const std::list<FileWatch*>::iterator place;
};

// --- The queue ---

std::unique_ptr<Watch> Waiters::add(Name& name, Mode mode, std::function<void()> changed) {
  return std::make_unique<FileWatch>(*this, name, mode, std::move(changed));
}

bool Waiters::writer_waits(const Name& name) noexcept {
  return std::ranges::find(name.waiters, Mode::exclusive, &FileWatch::mode) != name.waiters.end();
}

void Waiters::start(Name& name, bool open) {
  if (!open) {
    arm_poll(name);
    return wake_first(name);
  }
  if (!name.subscription.active()) subscribe(name);
  // No event reports what happened between the waiter's try and now.
  if (!name.full()) check(name);
}

void Waiters::remove(FileWatch& watch) {
  Name& name = watch.name;
  const bool first = watch.place == name.waiters.begin();
  name.waiters.erase(watch.place);
  const bool opens_gate = name.file.gate && !writer_waits(name);
  if (opens_gate) LockFiles::close(name.file);  // which wakes the readers that it kept out
  if (name.waiters.empty()) {
    name.subscription.reset();
    name.recheck.disarm();
    name.poll.disarm();
    names_.settle(name);
  } else if ((first || opens_gate) && !name.full()) {
    // It may have been woken without trying: wake the next. If it got the lock, others may enter beside it.
    wake_first(name);
  }
}

void Waiters::subscribe(Name& name) {
  const bool subscribed =
      client_.subscribe(name.file.fd.get(), files_.kind() == LockKind::election ? election_events : file_events,
                        files_.directory().path(), name.subscription,
                        [this, &name](std::uint32_t mask, std::string_view /*entry*/) { on_file_event(name, mask); });
  if (subscribed) {
    name.poll.disarm();
  } else {
    arm_poll(name);
  }
}

void Waiters::on_file_event(Name& name, std::uint32_t mask) {
  if ((mask & (file_replaced | watch_gone)) != 0) losses_.revalidate(name);
  if ((mask & IN_MODIFY) != 0) wake_first(name);
  check(name);
  names_.settle(name);
}

// --- Checks ---

void Waiters::check(Name& name) {
  name.recheck_step = 0;
  name.recheck.disarm();
  check_again(name);
}

void Waiters::check_again(Name& name) {
  if (name.full() || name.waiters.empty()) return;
  if (!name.file.fd) return wake_first(name);
  ++client_.looks;
  auto lock = files_.check_for_waiters(name.file);
  // The try finds an error again, and reports it.
  if (!lock.ok() || lock.value() == LockState::free) return wake_first(name);
  if (name.recheck_step < recheck_delays.size()) arm_recheck(name, name.recheck_step);
}

void Waiters::check_soon(Name& name) {
  if (!name.waiters.empty()) arm_recheck(name, std::min(name.recheck_step, recheck_delays.size() - 1));
}

void Waiters::arm_recheck(Name& name, std::size_t step) {
  name.recheck_step = step + 1;
  name.recheck.arm(saturating_add(client_.now(), recheck_delays[step]), [this, &name] { check_again(name); });
}

// --- Wake-ups ---

void Waiters::wake_first(Name& name) {
  name.file.full_at = TimePoint::min();
  if (std::exchange(name.wake_posted, true)) return;
  names_.post(name, [this](Name& found) { deliver_wake(found); });
}

void Waiters::deliver_wake(Name& name) {
  name.wake_posted = false;
  if (name.waiters.empty()) return;
  if (files_.kind() == LockKind::election) return wake_all(name);
  if (name.full()) return;
  ++client_.wake_ups;
  // While a writer keeps readers out, only a writer can enter.
  const auto next =
      name.file.gate ? std::ranges::find(name.waiters, Mode::exclusive, &FileWatch::mode) : name.waiters.begin();
  const auto changed = (*next)->changed;
  (*changed)();  // may try, be granted, give up: do not use the name afterwards
}

// Observers of an election wait, too, and do not pass a wake-up on.
void Waiters::wake_all(Name& name) {
  const std::string entry = name.file.entry;
  const std::uint64_t round = ++round_;
  for (Name* here = &name; here != nullptr; here = names_.find(entry)) {
    const auto next =
        std::ranges::find_if(here->waiters, [&](const FileWatch* each) { return each->woken_in_round < round; });
    if (next == here->waiters.end()) return;
    ++client_.wake_ups;
    (*next)->woken_in_round = round;
    const auto changed = (*next)->changed;
    (*changed)();  // may end any watch, and be the last one of the name
  }
}

// --- Without inotify ---

void Waiters::arm_poll(Name& name) {
  const auto pause = random_between(poll_min, poll_max, client_.host.executor());
  name.poll.arm(saturating_add(client_.now(), pause), [this, &name] { poll(name); });
}

void Waiters::poll(Name& name) {
  arm_poll(name);
  losses_.revalidate(name);
  name.recheck_step = recheck_delays.size();  // the next poll is soon enough
  check_again(name);
  if (files_.kind() == LockKind::election) wake_first(name);  // no check finds a new leader
  names_.settle(name);
}

}  // namespace dlock::file
