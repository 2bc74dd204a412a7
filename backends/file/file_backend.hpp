// The file backend: locks among the processes of one machine, without a server. See docs/backends/file.md.
//
//   register_backend("file", file::make_file_backend);
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <dlock/lifetime.hpp>
#include <dlock/try_backend.hpp>

#include "backends/file/inotify.hpp"
#include "backends/file/location.hpp"
#include "backends/file/lock_directory.hpp"
#include "backends/file/name_state.hpp"

namespace dlock::file {

// Opens or makes the directory that the URL names. Throws Error.
[[nodiscard]] std::unique_ptr<Backend> make_file_backend(BackendHost& host, const BackendConfig& config);

// What the instances of one client share.
struct SharedState {
  const std::shared_ptr<Inotify> inotify = std::make_shared<Inotify>();
  std::atomic<bool> warned_of_polling{false};
  // How much work was done since the start.
  std::atomic<std::uint64_t> kernel_tries{0};
  std::atomic<std::uint64_t> looks{0};
  std::atomic<std::uint64_t> wake_ups{0};
  std::atomic<std::uint64_t> path_looks{0};
};

class FileBackend final : public TryBackend {
 public:
  FileBackend(BackendHost& host, Location location,
              std::shared_ptr<SharedState> shared = std::make_shared<SharedState>());
  ~FileBackend() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override;
  [[nodiscard]] std::unique_ptr<Backend> another(BackendHost& host) const override;
  void try_acquire(const LockRequest& request, TryHandler done) override;
  [[nodiscard]] std::unique_ptr<Watch> watch(Space /*space*/, const std::string& name,
                                             std::function<void()> changed) override;
  void renew(const Grant& grant, RenewHandler done) override;
  void release(const Grant& grant, ReleaseHandler done) override;
  void inspect(Space /*space*/, const std::string& name, Handler<LockInfo> done) override;
  void list(Space /*space*/, Handler<std::vector<LockInfo>> done) override;
  void break_lock(Space /*space*/, const std::string& name, Handler<bool> done) override;
  void forget(const Forgetting& what, Handler<std::vector<std::string>> done) override;
  void diagnose(Handler<std::vector<Finding>> done) override;

  // How much work was done since the start; any thread.
  [[nodiscard]] std::uint64_t kernel_tries() const noexcept { return shared_->kernel_tries; }
  [[nodiscard]] std::uint64_t looks() const noexcept { return shared_->looks; }
  [[nodiscard]] std::uint64_t wake_ups() const noexcept { return shared_->wake_ups; }
  [[nodiscard]] std::uint64_t path_looks() const noexcept { return shared_->path_looks; }

 private:
  friend class NameState;
  friend class FileWatch;

  // Hears about the directory and its entries: that is how a holder learns that its file is gone.
  class DirectoryListener final : public Inotify::Listener {
   public:
    explicit DirectoryListener(FileBackend& backend) noexcept : backend_(backend) {}
    void on_event(std::uint32_t mask, std::string_view entry) override { backend_.directory_event(mask, entry); }

   private:
    FileBackend& backend_;
  };

  // --- Acquire and release (file_backend.cpp) ---
  [[nodiscard]] TryOutcome attempt(const LockRequest& request);
  // The same once the name is known not to be held by this client; nullopt: the file was replaced, try again.
  [[nodiscard]] std::optional<TryOutcome> attempt_on(NameState& state, const LockRequest& request);
  [[nodiscard]] std::optional<TryOutcome> answer_busy(NameState& state);
  [[nodiscard]] std::optional<TryOutcome> retry_elsewhere(NameState& state);
  [[nodiscard]] TryOutcome grant(NameState& state, const LockRequest& request);
  // Answers busy without making an event that would wake waiters; nullopt: it takes a real try.
  [[nodiscard]] std::optional<TryOutcome> glance(const std::string& file, const LockRequest& request);
  [[nodiscard]] std::optional<Failure> open_file(NameState& state);
  // Unlocks and closes, which wakes waiters everywhere.
  void drop_file(NameState& state) noexcept;
  void begin_lease(NameState& state, const HeldLock& lease) noexcept;
  void end_lease(NameState& state) noexcept;
  [[nodiscard]] std::optional<Failure> follow_directory();

  [[nodiscard]] NameState* find(std::string_view file) noexcept;
  [[nodiscard]] NameState& obtain(const std::string& file, const std::string& name);
  // Forgets the name if nobody holds or waits.
  void settle(NameState& state);
  void settle_later(const std::string& file);
  void post_for(const std::string& file, void (FileBackend::*task)(NameState&));

  // --- Waiting and loss (file_waiting.cpp) ---
  void start_waiting(NameState& state);
  void stop_waiting(NameState& state);
  void subscribe(NameState& state);
  void file_event(NameState& state, std::uint32_t mask);
  // The lock may have become free: have the first waiter try, or look again shortly.
  void check(NameState& state);
  void look(NameState& state);
  void wake_first(NameState& state);
  void deliver_wake(NameState& state);
  void poll(NameState& state);
  void arm_poll(NameState& state);
  void warn_of_polling(int error);

  void watch_directory();
  void directory_event(std::uint32_t mask, std::string_view entry);
  // Lets go of files that other processes no longer find by their path; a lease on one is lost.
  void revalidate(NameState& state);
  void revalidate_all();
  // inotify does not tell when a directory further up is renamed, or when something is mounted or unmounted on the way.
  // So each lease's file is looked for under its path once a second.
  void arm_loss_check();
  void check_leases();

  // --- Questions and removal (inspection.cpp, diagnosis.cpp) ---
  [[nodiscard]] Result<LockInfo> inspect_file(const std::string& file, const std::string& name);
  [[nodiscard]] Result<std::vector<LockInfo>> list_all();
  [[nodiscard]] Result<std::vector<std::string>> forget_files(const Forgetting& what);
  // Removes the file if its last token is this one or a smaller one, and nobody has the lock. Answers the lock's name.
  [[nodiscard]] Result<std::optional<std::string>> forget_file(const std::string& file, std::int64_t newest);
  // The names of files that are, by name, lock files.
  [[nodiscard]] Result<std::vector<std::string>> entries();
  [[nodiscard]] Finding check_inotify();
  [[nodiscard]] Finding check_lock_files();
  [[nodiscard]] Finding check_permissions();

  const Location location_;
  LockDirectory directory_;
  std::uint64_t known_generation_;  // of directory_, that watches and names were adapted to
  bool directory_suspect_ = false;  // it was moved or removed: look before using it
  const std::shared_ptr<SharedState> shared_;
  DirectoryListener directory_listener_;
  Inotify::Subscription directory_subscription_;
  int inotify_error_ = 0;                                                   // why the last subscription failed
  std::unordered_map<std::string_view, std::unique_ptr<NameState>> names_;  // by their `file`
  std::list<NameState*> held_;  // those with a lease; who was looked at last comes last
  std::size_t unchecked_ = 0;   // how many of held_ this round of check_leases() has still to look at
  Timer loss_check_;
  Lifetime lifetime_;
};

}  // namespace dlock::file
