// How the file backend waits, and how it learns that a lock was lost.
#include <sys/inotify.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "backends/file/file_name.hpp"
#include "backends/file/lock_space.hpp"

namespace dlock::file {

namespace {

using std::chrono::milliseconds;

// Every clean release closes a writable descriptor, and so does the kernel for a holder that dies.
constexpr std::uint32_t file_replaced = IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;
constexpr std::uint32_t file_events = IN_CLOSE_WRITE | file_replaced;
// So that observers of the election learn of the leader.
constexpr std::uint32_t election_events = file_events | IN_MODIFY;
constexpr std::uint32_t directory_gone = IN_DELETE_SELF | IN_MOVE_SELF;
constexpr std::uint32_t directory_events = IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | directory_gone | IN_ONLYDIR;
constexpr std::uint32_t watch_gone = IN_IGNORED | IN_UNMOUNT | IN_Q_OVERFLOW;

// For a dying holder the kernel reports the closed descriptor first and removes the lock a moment later.
constexpr std::array recheck_delays = {milliseconds(1), milliseconds(4), milliseconds(16), milliseconds(64)};

constexpr milliseconds poll_min(50);
constexpr milliseconds poll_max(150);
constexpr milliseconds loss_check(1000);
// So that tens of thousands of leases do not hold up everything else.
constexpr std::size_t leases_at_once = 256;
constexpr milliseconds between_batches(1);
// Programs that remove old files count in days.
constexpr std::chrono::hours touch_period(24);

}  // namespace

// --- The queue of waiters ---

void NameState::on_event(std::uint32_t mask, std::string_view /*entry*/) {
  locks.file_event(*this, mask);
}

bool NameState::writer_waits() const noexcept {
  return std::ranges::any_of(waiters, [](const FileWatch* each) { return each->mode() == Mode::exclusive; });
}

FileWatch::FileWatch(NameState& state, Mode mode, std::function<void()> changed)
    : woken_in_round(state.locks.wake_round_),
      state_(state),
      mode_(mode),
      changed_(std::make_shared<const std::function<void()>>(std::move(changed))),
      place_(state.waiters.insert(state.waiters.end(), this)) {}

FileWatch::~FileWatch() {
  const bool first = place_ == state_.waiters.begin();
  state_.waiters.erase(place_);
  LockSpace& locks = state_.locks;
  const bool opens_gate = state_.gate && !state_.writer_waits();
  if (opens_gate) LockSpace::drop_file(state_);  // which tells those whom it kept out
  if (state_.waiters.empty()) {
    locks.stop_waiting(state_);
  } else if ((first || opens_gate) && !locks.closed(state_)) {
    // It may have been woken and not have tried: the next in line does. If it entered, others may fit in beside it.
    locks.wake_first(state_);
  }
}

std::unique_ptr<Watch> LockSpace::watch(const std::string& name, Mode mode, std::function<void()> changed) {
  NameState& state = obtain(encode_file_name(name), name);
  if (state.name != name) return nullptr;  // the next try reports the clash
  auto watch = std::make_unique<FileWatch>(state, mode, std::move(changed));
  if (state.waiters.size() == 1) start_waiting(state);
  return watch;
}

void LockSpace::start_waiting(NameState& state) {
  if (open_file(state).has_value()) {
    // The waiter's next try meets the same obstacle and reports it.
    arm_poll(state);
    wake_first(state);
    return;
  }
  if (!state.subscription.active()) subscribe(state);
  // Whatever happened between the waiter's try and now made no event.
  if (!closed(state)) check(state);
}

void LockSpace::stop_waiting(NameState& state) {
  state.subscription.reset();
  state.recheck.disarm();
  state.poll.disarm();
  settle(state);
}

void LockSpace::subscribe(NameState& state) {
  // A second subscription to the same file is the first one, so replacing it misses nothing.
  Inotify::Subscription fresh;
  const int error = shared_.inotify.subscribe(
      state.fd.get(), kind_ == LockKind::election ? election_events : file_events, state, fresh);
  state.subscription = std::move(fresh);
  if (error == 0) {
    state.poll.disarm();
    return;
  }
  warn_of_polling(error);
  arm_poll(state);
}

void LockSpace::file_event(NameState& state, std::uint32_t mask) {
  if ((mask & (file_replaced | watch_gone)) != 0) revalidate(state);
  if ((mask & IN_MODIFY) != 0) wake_first(state);
  check(state);
  settle(state);
}

void LockSpace::check(NameState& state) {
  state.recheck_step = 0;
  state.recheck.disarm();
  look(state);
}

void LockSpace::look(NameState& state) {
  if (closed(state) || state.waiters.empty()) return;
  if (!state.fd) {
    wake_first(state);
    return;
  }
  ++shared_.looks;
  auto lock = look_for_waiters(state);
  if (!lock.ok() || lock.value() == LockState::free) {
    wake_first(state);  // an error is found again, and reported, by the try
    return;
  }
  if (state.recheck_step == recheck_delays.size()) return;
  const auto delay = recheck_delays[state.recheck_step++];
  state.recheck.arm(saturating_add(now(), delay), [this, &state] { look(state); });
}

void LockSpace::look_again_soon(NameState& state) {
  if (state.waiters.empty()) return;
  const auto delay = recheck_delays[std::min(state.recheck_step, recheck_delays.size() - 1)];
  state.recheck_step = std::min(state.recheck_step + 1, recheck_delays.size());
  state.recheck.arm(saturating_add(now(), delay), [this, &state] { look(state); });
}

void LockSpace::wake_first(NameState& state) {
  state.full_at = TimePoint::min();
  if (std::exchange(state.wake_posted, true)) return;
  post_for(state.file, &LockSpace::deliver_wake);
}

void LockSpace::deliver_wake(NameState& state) {
  state.wake_posted = false;
  if (state.waiters.empty()) return;
  if (kind_ == LockKind::election) return wake_all(state);
  if (closed(state)) return;
  ++shared_.wake_ups;
  // Where a writer keeps readers out, no other can enter.
  const auto next =
      state.gate ? std::ranges::find(state.waiters, Mode::exclusive, &FileWatch::mode) : state.waiters.begin();
  const auto changed = (*next)->changed();
  (*changed)();  // may try, be granted, give up: nothing here is touched afterwards
}

// Some of them only want to know who leads, and pass nothing on.
void LockSpace::wake_all(NameState& state) {
  const std::string file = state.file;
  const std::uint64_t round = ++wake_round_;
  for (NameState* here = &state; here != nullptr; here = find(file)) {
    const auto next =
        std::ranges::find_if(here->waiters, [&](const FileWatch* each) { return each->woken_in_round < round; });
    if (next == here->waiters.end()) return;
    ++shared_.wake_ups;
    (*next)->woken_in_round = round;
    const auto changed = (*next)->changed();
    (*changed)();  // may end any watch, and be the last one of the name
  }
}

// --- Without inotify ---

void LockSpace::arm_poll(NameState& state) {
  const auto spread = static_cast<std::uint64_t>((poll_max - poll_min).count()) + 1;
  const auto delay = poll_min + milliseconds(host().executor().random() % spread);
  state.poll.arm(saturating_add(now(), delay), [this, &state] { poll(state); });
}

void LockSpace::poll(NameState& state) {
  arm_poll(state);
  revalidate(state);
  state.recheck_step = recheck_delays.size();  // the next poll is soon enough
  look(state);
  if (kind_ == LockKind::election) wake_first(state);  // a new leader shows in no look
  settle(state);
}

void LockSpace::warn_of_polling(int error) {
  inotify_error_ = error;
  if (std::exchange(shared_.warned_of_polling, true)) return;
  host().warn({"",
               {errc::unavailable, "inotify is not available for " + directory_.path() + " (" +
                                       std::generic_category().message(error) +
                                       "): waiters poll instead; see fs.inotify in sysctl"}});
}

// --- Loss ---

void LockSpace::watch_directory() {
  if (directory_subscription_.active() || !directory_.is_current()) return;
  const int error =
      shared_.inotify.subscribe(directory_.fd(), directory_events, directory_listener_, directory_subscription_);
  if (error != 0) warn_of_polling(error);
}

void LockSpace::directory_event(std::uint32_t mask, std::string_view entry) {
  if ((mask & (directory_gone | watch_gone)) != 0) {
    directory_suspect_ = true;
    if ((mask & (IN_IGNORED | IN_UNMOUNT)) != 0) directory_subscription_.reset();
    revalidate_all();
    return;
  }
  if (NameState* const state = find(entry)) {
    revalidate(*state);
    check(*state);
    settle(*state);
  }
}

void LockSpace::revalidate(NameState& state) {
  if (!state.fd && state.leases.empty()) return;
  ++shared_.path_looks;
  auto found = find_file(state.path);
  if (!found.ok() || found.value() == state.identity) return;  // an error says nothing about the file
  drop_file(state);
  directory_suspect_ = true;
  lose(state, found.value().has_value());
}

void LockSpace::lose(NameState& state, bool replaced) {
  if (state.leases.empty()) return;
  const Failure why{errc::lost, "the file of " + std::string(to_string(kind_)) + " \"" + state.name + "\", " +
                                    state.path + (replaced ? ", was replaced" : ", was removed")};
  std::vector<OwnerId> owners;
  owners.reserve(state.leases.size());
  while (!state.leases.empty()) {
    HeldLock& lease = *state.leases.find(state.leases.first().owner);
    owners.push_back(lease.owner);
    end_lease(state, lease);
  }
  for (const OwnerId& owner : owners) host().lost(owner, why);
}

void LockSpace::revalidate_all() {
  std::vector<std::string> files;
  files.reserve(names_.size());
  for (const auto& entry : names_) files.emplace_back(entry.first);
  for (const auto& file : files) {
    NameState* const state = find(file);
    if (state == nullptr) continue;
    revalidate(*state);
    check(*state);
    settle(*state);
  }
}

void LockSpace::arm_loss_check() {
  // A release leaves it armed: arming it again with each acquire would cost more than one useless look per second.
  if (loss_check_.armed()) return;
  directory_.forbid_cleaning();
  loss_check_.arm(saturating_add(now(), loss_check), [this] { check_leases(); });
}

void LockSpace::check_leases() {
  if (unchecked_ == 0) {
    if (held_.empty()) {
      directory_.allow_cleaning();
      return;  // the next grant arms the timer again
    }
    watch_directory();             // if it is not watched yet, there may be room for it by now
    directory_.forbid_cleaning();  // it may be another directory by now
    unchecked_ = held_.size();
    touching_ = now() - touched_at_ >= touch_period;
    if (touching_) touched_at_ = now();
  }
  unchecked_ = std::min(unchecked_, held_.size());  // some were released meanwhile
  std::size_t batch = std::min(unchecked_, leases_at_once);
  unchecked_ -= batch;
  for (; batch > 0 && !held_.empty(); --batch) {
    NameState& state = *held_.front();
    held_.splice(held_.end(), held_, held_.begin());
    revalidate(state);
    if (touching_ && !state.leases.empty()) touch(state);
    // Letting go of the file is what tells those who wait for it; without inotify, they poll.
    if (state.leases.empty()) settle(state);
  }
  const milliseconds pause = unchecked_ > 0 ? between_batches : loss_check;
  loss_check_.arm(saturating_add(now(), pause), [this] { check_leases(); });
}

void LockSpace::touch(const NameState& state) noexcept {
  const GuardedFd& fd = several() ? state.leases.first().fd : state.fd;
  (void)::futimens(fd.get(), nullptr);  // if it fails, the file is as old as it is; a loss would be noticed
}

}  // namespace dlock::file
