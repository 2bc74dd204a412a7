// The locks of one kind in one directory, as one client has them. Serialised by the backend.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/try_backend.hpp>

#include "backends/file/inotify.hpp"
#include "backends/file/lock_directory.hpp"
#include "backends/file/name_state.hpp"
#include "backends/file/slots.hpp"

namespace dlock::file {

// The lock spaces of a client share it.
struct SharedState {
  explicit SharedState(Executor& executor) : inotify(executor) {}

  Inotify inotify;
  bool warned_of_polling = false;
  // How much work was done since the start; any thread reads these.
  std::atomic<std::uint64_t> kernel_tries{0};
  std::atomic<std::uint64_t> looks{0};
  std::atomic<std::uint64_t> wake_ups{0};
  std::atomic<std::uint64_t> path_looks{0};
};

// For so long what is known of a file is trusted, if the kernel would report a change.
constexpr auto trust_path = std::chrono::milliseconds(250);

class LockSpace {
 public:
  LockSpace(BackendHost& host, LockKind kind, LockDirectory directory, SharedState& shared);
  LockSpace(const LockSpace&) = delete;
  LockSpace& operator=(const LockSpace&) = delete;
  ~LockSpace();

  // As Backend and TryBackend say; those that may run out of memory throw std::bad_alloc.
  [[nodiscard]] TryOutcome try_acquire(const LockRequest& request);
  [[nodiscard]] std::unique_ptr<Watch> watch(const std::string& name, Mode mode, std::function<void()> changed);
  [[nodiscard]] bool release(const Grant& grant);  // false: it was not the grant's any more
  [[nodiscard]] Result<LockInfo> inspect(const std::string& name);
  [[nodiscard]] Result<std::vector<LockInfo>> list();
  // "; ..., which have to end or release it" for a refusal; empty if no holder is known.
  [[nodiscard]] std::string who_holds(const std::string& name);
  [[nodiscard]] Result<std::vector<std::string>> forget(const Forgetting& what);
  [[nodiscard]] std::vector<Finding> diagnose();
  // Of the directory and its files alone.
  [[nodiscard]] std::vector<Finding> diagnose_directory();

 private:
  friend class NameState;
  friend class FileWatch;

  // Hears about the directory and its entries: that is how a holder learns that its file is gone.
  class DirectoryListener final : public Inotify::Listener {
   public:
    explicit DirectoryListener(LockSpace& locks) noexcept : locks_(locks) {}
    void on_event(std::uint32_t mask, std::string_view entry) override { locks_.directory_event(mask, entry); }

   private:
    LockSpace& locks_;
  };

  // What is known of a lock without taking part in it.
  struct Glimpse {
    bool held = false;
    RecordContent record;
    std::vector<SlotHolder> holders = {};
    bool permits_in_use = false;
    std::optional<std::string> value = std::nullopt;  // of an election: what its present holder has written
  };

  [[nodiscard]] BackendHost& host() const noexcept { return host_; }
  [[nodiscard]] TimePoint now() const noexcept { return host_.executor().now(); }
  // Whether several can hold a lock: then each lease has a descriptor of its own.
  [[nodiscard]] bool several() const noexcept { return kind_ == LockKind::read_write || kind_ == LockKind::semaphore; }

  [[nodiscard]] static TryOutcome busy() { return {.status = TryOutcome::Status::busy}; }
  [[nodiscard]] static TryOutcome failed(Failure failure) {
    return {.status = TryOutcome::Status::failed, .failure = std::move(failure)};
  }

  // --- Acquire and release (lock_space.cpp) ---
  // The same once the name is known not to be held by this client; nullopt: the file was replaced, try again.
  [[nodiscard]] std::optional<TryOutcome> attempt_on(NameState& state, const LockRequest& request);
  [[nodiscard]] std::optional<TryOutcome> answer_busy(NameState& state);
  [[nodiscard]] std::optional<TryOutcome> retry_elsewhere(NameState& state);
  [[nodiscard]] TryOutcome grant(NameState& state, const LockRequest& request);
  // Answers busy without making an event that would wake waiters; nullopt: it takes a real try.
  [[nodiscard]] std::optional<TryOutcome> glance(const std::string& file, const LockRequest& request);
  [[nodiscard]] std::optional<Failure> open_file(NameState& state);
  // Unlocks and closes, which wakes waiters everywhere.
  static void drop_file(NameState& state) noexcept;
  void begin_lease(NameState& state, HeldLock lease) noexcept;
  // Unlocks and closes what the lease has.
  void end_lease(NameState& state, HeldLock& lease) noexcept;
  [[nodiscard]] std::optional<Failure> follow_directory();

  [[nodiscard]] NameState* find(std::string_view file) noexcept;
  [[nodiscard]] NameState& obtain(const std::string& file, const std::string& name);
  // Forgets the name if it has no holder and no waiter.
  void settle(NameState& state);
  void settle_later(const std::string& file);
  void post_for(const std::string& file, void (LockSpace::*task)(NameState&));

  // --- Where the kinds differ (entering.cpp) ---
  // The answer that needs no kernel, because this client itself holds the lock or keeps others out.
  [[nodiscard]] std::optional<TryOutcome> refused_here(const NameState& state, const LockRequest& request) const;
  // Another waiter of this client found the semaphore full, and none has been told of a change since.
  [[nodiscard]] bool full_a_moment_ago(const NameState& state, const LockRequest& request) const noexcept;
  // This client can let no other in.
  [[nodiscard]] bool closed(const NameState& state) const noexcept;
  // Takes the locks that the request needs, of state.fd, as far as they do not depend on the record.
  [[nodiscard]] Result<LockState> enter(NameState& state, const LockRequest& request);
  [[nodiscard]] Result<LockState> enter_to_write(NameState& state, const LockRequest& request);
  [[nodiscard]] Result<LockState> enter_beside_others(NameState& state, const LockRequest& request);
  // The rest of them, where several may hold the lock; nullopt: all are ours, with this slot.
  [[nodiscard]] std::optional<TryOutcome> enter_by_record(NameState& state, const LockRequest& request,
                                                          const ReadRecord* stored, std::uint32_t& slot);
  // Gives back what the try took but did not need.
  void leave(NameState& state, const LockRequest& request, TryOutcome::Status status) noexcept;
  // What is to be given back once the record is written.
  void settle_in(NameState& state, const LockRequest& request) noexcept;
  // Whether the request would find the lock busy, of one's own waiters aside; works on a read-only descriptor.
  [[nodiscard]] Result<LockState> look_for(int fd, const std::string& path, const LockRequest& request);
  // Whether one of those who wait might enter.
  [[nodiscard]] Result<LockState> look_for_waiters(const NameState& state);
  // Another process was entering just then, which makes no event when it ends.
  void look_again_soon(NameState& state);

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
  void wake_all(NameState& state);
  void poll(NameState& state);
  void arm_poll(NameState& state);
  void warn_of_polling(int error);

  void watch_directory();
  void directory_event(std::uint32_t mask, std::string_view entry);
  // Lets go of files that other processes no longer find by their path; a lease on one is lost.
  void revalidate(NameState& state);
  void lose(NameState& state, bool replaced);
  void revalidate_all();
  // inotify does not tell when a directory further up is renamed, or when something is mounted or unmounted on the way.
  // So each lease's file is looked for under its path once a second.
  void arm_loss_check();
  void check_leases();
  // Programs that remove old files leave this one alone.
  void touch(const NameState& state) noexcept;

  // --- Questions and removal (inspection.cpp, diagnosis.cpp) ---
  [[nodiscard]] Result<Glimpse> glimpse(int fd, const std::string& path);
  [[nodiscard]] std::optional<Failure> look_at_holders(int fd, const std::string& path, Glimpse& seen) const;
  [[nodiscard]] LockInfo describe(std::string name, const Glimpse& seen) const;
  // Removes the file if its last token is this one or a smaller one, and the lock is free. Answers the lock's name.
  [[nodiscard]] Result<std::optional<std::string>> forget_file(const std::string& file, std::int64_t newest);
  // The names of files that are, by name, lock files.
  [[nodiscard]] Result<std::vector<std::string>> entries();
  [[nodiscard]] Finding check_inotify();
  [[nodiscard]] Finding check_lock_files();
  [[nodiscard]] Finding check_permissions();

  BackendHost& host_;
  const LockKind kind_;
  LockDirectory directory_;
  std::uint64_t known_generation_;  // of directory_, that watches and names were adapted to
  bool directory_suspect_ = false;  // it was moved or removed: look before using it
  SharedState& shared_;
  DirectoryListener directory_listener_;
  Inotify::Subscription directory_subscription_;
  int inotify_error_ = 0;                                                   // why the last subscription failed
  std::unordered_map<std::string_view, std::unique_ptr<NameState>> names_;  // by their `file`
  std::list<NameState*> held_;    // those with a lease; who was looked at last comes last
  std::size_t unchecked_ = 0;     // how many of held_ this round of check_leases() has still to look at
  TimePoint touched_at_;          // when the last round began that touches files
  bool touching_ = false;         // this round does
  std::uint64_t wake_round_ = 0;  // of all waiters of an election
  Timer loss_check_;
  Lifetime lifetime_;
};

}  // namespace dlock::file
