#include "backends/file/loss_monitor.hpp"

#include <sys/inotify.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace dlock::file {

namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t directory_gone = IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT | IN_Q_OVERFLOW;
constexpr std::uint32_t directory_events =
    IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

constexpr milliseconds loss_check(1000);
// Tens of thousands of leases must not delay the client's other work.
constexpr std::size_t leases_at_once = 256;
constexpr milliseconds between_batches(1);
// Programs that remove old files count in days.
constexpr std::chrono::hours touch_period(24);

}  // namespace

LossMonitor::LossMonitor(LockFiles& files, Names& names, ClientState& client, std::function<void(Name&)> changed)
    : files_(files),
      names_(names),
      client_(client),
      changed_(std::move(changed)),
      known_generation_(files.directory().generation()),
      touched_at_(client.now()),
      check_(client.host.executor()) {}

// --- Leases ---

void LossMonitor::begin(Name& name, HeldLock lease) {
  // A release leaves the timer armed: arming it with each acquire would cost more than one needless check a second.
  if (!check_.armed()) {
    files_.directory().forbid_cleaning();
    check_.arm(saturating_add(client_.now(), loss_check), [this] { check_leases(); });
  }
  if (files_.several()) lease.fd = std::move(name.file.fd);
  if (name.leases.empty()) name.held_entry = held_.insert(held_.end(), &name);
  name.leases.push_back(std::move(lease));
}

void LossMonitor::end(Name& name, HeldLock& lease) noexcept {
  if (&lease != &name.leases.back()) std::swap(lease, name.leases.back());
  const HeldLock ended = std::move(name.leases.back());
  name.leases.pop_back();
  if (ended.fd) {
    drop_lock(ended.fd.get());
  } else if (!files_.several()) {
    LockFiles::close(name.file);
  }
  if (name.leases.empty()) held_.erase(name.held_entry);
}

void LossMonitor::lose(Name& name, bool replaced) {
  if (name.leases.empty()) return;
  const Failure why{errc::lost, "the file of " + std::string(to_string(files_.kind())) + " \"" + name.file.name +
                                    "\", " + name.file.path + (replaced ? ", was replaced" : ", was removed")};
  std::vector<OwnerId> owners;
  owners.reserve(name.leases.size());
  while (!name.leases.empty()) {
    owners.push_back(name.leases.front().owner);
    end(name, name.leases.front());
  }
  for (const OwnerId& owner : owners) client_.host.lost(owner, why);
}

void LossMonitor::revalidate(Name& name) {
  if (!name.file.fd && name.leases.empty()) return;
  ++client_.path_looks;
  auto found = find_file(name.file.path);
  if (!found.ok() || found.value() == name.file.identity) return;  // an error says nothing about the file
  LockFiles::close(name.file);
  suspect_directory();
  lose(name, found.value().has_value());
}

void LossMonitor::report(Name& name) {
  revalidate(name);
  changed_(name);
  names_.settle(name);
}

void LossMonitor::revalidate_all() {
  for (const auto& entry : names_.entries()) {
    if (Name* const name = names_.find(entry)) report(*name);
  }
}

void LossMonitor::check_leases() {
  if (unchecked_ == 0) {
    if (held_.empty()) {
      files_.directory().allow_cleaning();
      return;  // the next lease arms the timer again
    }
    (void)watch_directory();               // if it was not available, it may be by now
    files_.directory().forbid_cleaning();  // it may be a different directory by now
    unchecked_ = held_.size();
    touching_ = client_.now() - touched_at_ >= touch_period;
    if (touching_) touched_at_ = client_.now();
  }
  unchecked_ = std::min(unchecked_, held_.size());  // some were released meanwhile
  std::size_t batch = std::min(unchecked_, leases_at_once);
  unchecked_ -= batch;
  for (; batch > 0 && !held_.empty(); --batch) {
    Name& name = *held_.front();
    held_.splice(held_.end(), held_, held_.begin());
    revalidate(name);
    if (touching_ && !name.leases.empty()) touch(name);
    // The close wakes the waiters; without inotify, they poll.
    if (name.leases.empty()) names_.settle(name);
  }
  const milliseconds pause = unchecked_ > 0 ? between_batches : loss_check;
  check_.arm(saturating_add(client_.now(), pause), [this] { check_leases(); });
}

void LossMonitor::touch(const Name& name) const noexcept {
  const GuardedFd& fd = files_.several() ? name.leases.front().fd : name.file.fd;
  (void)::futimens(fd.get(), nullptr);  // if it fails, the file keeps its age; a loss would be noticed
}

// --- The directory ---

bool LossMonitor::watch_directory() {
  LockDirectory& directory = files_.directory();
  if (directory_subscription_.active()) return true;
  return directory.is_current() &&
         client_.subscribe(directory.fd(), directory_events, directory.path(), directory_subscription_,
                           [this](std::uint32_t mask, std::string_view entry) { on_directory_event(mask, entry); });
}

std::optional<Failure> LossMonitor::follow_directory() {
  LockDirectory& directory = files_.directory();
  if (std::exchange(directory_suspect_, false) && !directory.is_current()) {
    if (auto problem = directory.reopen()) {
      directory_suspect_ = true;
      return problem;
    }
  }
  if (std::exchange(known_generation_, directory.generation()) == directory.generation()) return std::nullopt;
  directory_subscription_.reset();
  (void)watch_directory();
  client_.host.executor().post(lifetime_.guard([this] { revalidate_all(); }));
  return std::nullopt;
}

std::optional<Failure> LossMonitor::check_directory() {
  directory_suspect_ = true;
  return follow_directory();
}

void LossMonitor::on_directory_event(std::uint32_t mask, std::string_view entry) {
  if ((mask & directory_gone) != 0) {
    suspect_directory();
    if ((mask & (IN_IGNORED | IN_UNMOUNT)) != 0) directory_subscription_.reset();
    revalidate_all();
  } else if (Name* const name = names_.find(entry)) {
    report(*name);
  }
}

}  // namespace dlock::file
