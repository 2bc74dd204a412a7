// How the file backend waits, and how it learns that a lock was lost.
#include <sys/inotify.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "backends/file/file_backend.hpp"
#include "backends/file/file_name.hpp"

namespace dlock::file {

namespace {

using std::chrono::milliseconds;

// Every clean release closes a writable descriptor, and so does the kernel for a holder that dies.
constexpr std::uint32_t file_replaced = IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;
constexpr std::uint32_t file_events = IN_CLOSE_WRITE | file_replaced;
constexpr std::uint32_t directory_gone = IN_DELETE_SELF | IN_MOVE_SELF;
constexpr std::uint32_t directory_events = IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | directory_gone | IN_ONLYDIR;
constexpr std::uint32_t watch_gone = IN_IGNORED | IN_UNMOUNT | IN_Q_OVERFLOW;

// For a dying holder the kernel tells of the closed descriptor first and removes the lock a moment later.
constexpr std::array recheck_delays = {milliseconds(1), milliseconds(4), milliseconds(16), milliseconds(64)};

constexpr milliseconds poll_min(50);
constexpr milliseconds poll_max(150);
constexpr milliseconds loss_check(1000);
// So that tens of thousands of leases do not hold up everything else.
constexpr std::size_t leases_at_once = 256;
constexpr milliseconds between_batches(1);

}  // namespace

// --- The queue of waiters ---

void NameState::on_event(std::uint32_t mask, std::string_view /*entry*/) {
  backend.file_event(*this, mask);
}

FileWatch::FileWatch(NameState& state, std::function<void()> changed)
    : state_(state),
      changed_(std::make_shared<const std::function<void()>>(std::move(changed))),
      place_(state.waiters.insert(state.waiters.end(), this)) {}

FileWatch::~FileWatch() {
  const bool first = place_ == state_.waiters.begin();
  state_.waiters.erase(place_);
  if (state_.waiters.empty()) {
    state_.backend.stop_waiting(state_);
  } else if (first && !state_.lease) {
    // It may have been woken and not have tried: the next in line does.
    state_.backend.wake_first(state_);
  }
}

std::unique_ptr<Watch> FileBackend::watch(Space /*space*/, const std::string& name, std::function<void()> changed) {
  NameState& state = obtain(encode_file_name(name), name);
  if (state.name != name) return nullptr;  // the next try reports the clash
  auto watch = std::make_unique<FileWatch>(state, std::move(changed));
  if (state.waiters.size() == 1) start_waiting(state);
  return watch;
}

void FileBackend::start_waiting(NameState& state) {
  if (open_file(state).has_value()) {
    // The waiter's next try meets the same obstacle and reports it.
    arm_poll(state);
    wake_first(state);
    return;
  }
  if (!state.subscription.active()) subscribe(state);
  // Whatever happened between the waiter's try and now made no event.
  if (!state.lease) check(state);
}

void FileBackend::stop_waiting(NameState& state) {
  state.subscription.reset();
  state.recheck.disarm();
  state.poll.disarm();
  settle(state);
}

void FileBackend::subscribe(NameState& state) {
  // A second subscription to the same file is the first one, so replacing it misses nothing.
  Inotify::Subscription fresh;
  const int error = shared_->inotify->subscribe(host().executor(), state.fd.get(), file_events, state, fresh);
  state.subscription = std::move(fresh);
  if (error == 0) {
    state.poll.disarm();
    return;
  }
  warn_of_polling(error);
  arm_poll(state);
}

void FileBackend::file_event(NameState& state, std::uint32_t mask) {
  if ((mask & (file_replaced | watch_gone)) != 0) revalidate(state);
  check(state);
  settle(state);
}

void FileBackend::check(NameState& state) {
  state.recheck_step = 0;
  state.recheck.disarm();
  look(state);
}

void FileBackend::look(NameState& state) {
  if (state.lease || state.waiters.empty()) return;
  if (!state.fd) {
    wake_first(state);
    return;
  }
  ++shared_->looks;
  auto lock = look_at_lock(state.fd.get(), state.path);
  if (!lock.ok() || lock.value() == LockState::free) {
    wake_first(state);  // an error is found again, and reported, by the try
    return;
  }
  if (state.recheck_step == recheck_delays.size()) return;
  const auto delay = recheck_delays[state.recheck_step++];
  state.recheck.arm(saturating_add(host().executor().now(), delay), [this, &state] { look(state); });
}

void FileBackend::wake_first(NameState& state) {
  if (std::exchange(state.wake_posted, true)) return;
  post_for(state.file, &FileBackend::deliver_wake);
}

void FileBackend::deliver_wake(NameState& state) {
  state.wake_posted = false;
  if (state.lease || state.waiters.empty()) return;
  ++shared_->wake_ups;
  const auto changed = state.waiters.front()->changed();
  (*changed)();  // may try, be granted, give up: nothing here is touched afterwards
}

// --- Without inotify ---

void FileBackend::arm_poll(NameState& state) {
  const auto spread = static_cast<std::uint64_t>((poll_max - poll_min).count()) + 1;
  const auto delay = poll_min + milliseconds(host().executor().random() % spread);
  state.poll.arm(saturating_add(host().executor().now(), delay), [this, &state] { poll(state); });
}

void FileBackend::poll(NameState& state) {
  arm_poll(state);
  revalidate(state);
  state.recheck_step = recheck_delays.size();  // the next poll is soon enough
  look(state);
  settle(state);
}

void FileBackend::warn_of_polling(int error) {
  inotify_error_ = error;
  if (shared_->warned_of_polling.exchange(true)) return;
  host().warn({"",
               {errc::unavailable, "inotify is not available for " + directory_.path() + " (" +
                                       std::generic_category().message(error) +
                                       "): waiting polls instead, see fs.inotify in sysctl"}});
}

// --- Loss ---

void FileBackend::watch_directory() {
  if (directory_subscription_.active() || !directory_.is_current()) return;
  const int error = shared_->inotify->subscribe(host().executor(), directory_.fd(), directory_events,
                                                directory_listener_, directory_subscription_);
  if (error != 0) warn_of_polling(error);
}

void FileBackend::directory_event(std::uint32_t mask, std::string_view entry) {
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

void FileBackend::revalidate(NameState& state) {
  if (!state.fd) return;
  ++shared_->path_looks;
  auto found = find_file(state.path);
  if (!found.ok() || found.value() == state.identity) return;  // an error says nothing about the file
  drop_file(state);
  directory_suspect_ = true;
  if (!state.lease) return;
  const OwnerId owner = state.lease->owner;
  end_lease(state);
  host().lost(owner, {errc::lost, "the file of lock \"" + state.name + "\", " + state.path +
                                      (found.value() ? ", was replaced" : ", was removed")});
}

void FileBackend::revalidate_all() {
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

void FileBackend::arm_loss_check() {
  // A release leaves it armed: arming it anew with each acquire would cost more than a look in vain a second.
  if (loss_check_.armed()) return;
  loss_check_.arm(saturating_add(host().executor().now(), loss_check), [this] { check_leases(); });
}

void FileBackend::check_leases() {
  if (unchecked_ == 0) {
    if (held_.empty()) return;  // the next grant arms the timer again
    watch_directory();          // if it is not watched yet, there may be room for it by now
    unchecked_ = held_.size();
  }
  unchecked_ = std::min(unchecked_, held_.size());  // some were released meanwhile
  std::size_t batch = std::min(unchecked_, leases_at_once);
  unchecked_ -= batch;
  for (; batch > 0 && !held_.empty(); --batch) {
    NameState& state = *held_.front();
    held_.splice(held_.end(), held_, held_.begin());
    revalidate(state);
    // Letting go of the file is what tells those who wait for it; without inotify, they poll.
    if (!state.lease) settle(state);
  }
  const milliseconds pause = unchecked_ > 0 ? between_batches : loss_check;
  loss_check_.arm(saturating_add(host().executor().now(), pause), [this] { check_leases(); });
}

}  // namespace dlock::file
