// Notices that the file of a lease, or the directory, was removed, renamed or replaced.
//
// inotify reports changes of the directory's entries and of the directory itself, but not that a directory further up
// is renamed, or that a file system is mounted or unmounted on the way. So the monitor also checks the file of each
// lease under its path once a second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string_view>

#include "backends/file/client_state.hpp"
#include "backends/file/names.hpp"

namespace dlock::file {

class LossMonitor {
 public:
  // Calls changed(name) after each check that may have closed a file.
  LossMonitor(LockFiles& files, Names& names, ClientState& client, std::function<void(Name&)> changed);

  // Begins a lease, with the lock that name.file has; ends one, and frees its lock.
  void begin(Name& name, HeldLock lease);
  void end(Name& name, HeldLock& lease) noexcept;
  // Closes the file if the path does not lead to it any more. Leases on it are lost.
  void revalidate(Name& name);
  // The path of the name leads to a different file than its leases have open.
  void lose(Name& name, bool replaced);

  // The directory may have been moved or removed: the next follow_directory() checks that.
  void suspect_directory() noexcept { directory_suspect_ = true; }
  // Opens (or makes) the directory that the path leads to now, if the open one is suspect and a different one.
  [[nodiscard]] std::optional<Failure> follow_directory();
  // As follow_directory(), also if nothing made the directory suspect.
  [[nodiscard]] std::optional<Failure> check_directory();
  // False: inotify is not available, and only the check each second finds a loss.
  bool watch_directory();

 private:
  void on_directory_event(std::uint32_t mask, std::string_view entry);
  void revalidate_all();
  void report(Name& name);  // revalidates, and reports to changed_
  void check_leases();
  // Programs that remove old files spare a file that was touched.
  void touch(const Name& name) const noexcept;

  LockFiles& files_;
  Names& names_;
  ClientState& client_;
  const std::function<void(Name&)> changed_;
  std::uint64_t known_generation_;  // of the directory, that watches and names were adapted to
  bool directory_suspect_ = false;
  Inotify::Subscription directory_subscription_;
  std::list<Name*> held_;      // the names with a lease, the one checked last at the end
  std::size_t unchecked_ = 0;  // how many of held_ this round of check_leases() has still to check
  TimePoint touched_at_;       // when the last round began that touches files
  bool touching_ = false;      // this round does
  Timer check_;
  Lifetime lifetime_;
};

}  // namespace dlock::file
