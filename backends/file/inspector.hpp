// Answers questions about locks without taking part in them, and removes the files of unused ones. A question only
// reads, and wakes no waiter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/file/loss_monitor.hpp"

namespace dlock::file {

class Inspector {
 public:
  Inspector(LockFiles& files, LossMonitor& losses, ClientState& client)
      : kind_(files.kind()),
        several_(files.several()),
        directory_(files.directory()),
        losses_(losses),
        client_(client) {}

  // As Backend says.
  [[nodiscard]] Result<LockInfo> inspect(const std::string& name);
  [[nodiscard]] Result<std::vector<LockInfo>> list();
  [[nodiscard]] Result<std::vector<std::string>> forget(const Forgetting& what);
  [[nodiscard]] std::vector<Finding> diagnose();
  // Checks only the directory and its files.
  [[nodiscard]] std::vector<Finding> diagnose_directory();
  // "; ..., which have to end or release it" for a refusal; empty if no holder is known.
  [[nodiscard]] std::string who_holds(const std::string& name);

 private:
  struct LockSnapshot {
    bool held = false;
    bool in_use = false;  // by holders or waiters: the number of permits cannot change
    RecordContent record;
    std::vector<SlotHolder> holders = {};
    std::optional<std::string> value = std::nullopt;  // of an election: what its present holder has written
  };

  [[nodiscard]] Result<LockSnapshot> snapshot(int fd, const std::string& path) const;
  [[nodiscard]] LockInfo describe(std::string name, const LockSnapshot& seen) const;
  // Removes the file if its last token is this one or a smaller one, and the lock is free. Answers the lock's name.
  [[nodiscard]] Result<std::optional<std::string>> forget_file(const std::string& file, std::int64_t newest);
  // The entries of the directory that are, by name, lock files.
  [[nodiscard]] Result<std::vector<std::string>> entries();
  [[nodiscard]] Finding check_inotify();
  [[nodiscard]] Finding check_lock_files();
  [[nodiscard]] Finding check_permissions();

  const LockKind kind_;
  const bool several_;
  LockDirectory& directory_;
  LossMonitor& losses_;
  ClientState& client_;
};

}  // namespace dlock::file
