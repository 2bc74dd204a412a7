// The file backend: locks among the processes of one machine, without a server. See docs/backends/file.md.
//
//   register_backend("file", file::make_file_backend);
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dlock/lock_kind.hpp>
#include <dlock/spi/try_backend.hpp>
#include <dlock/spi/url.hpp>

#include "backends/file/lock_space.hpp"

namespace dlock::file {

// Opens or makes the directory that the URL names. Throws Error.
[[nodiscard]] std::unique_ptr<Backend> make_file_backend(BackendHost& host, const BackendConfig& config);

struct Location {
  std::string path;
  mode_t mode = 0700;  // of directories that are made
};

// Throws Error(invalid_argument), which names the part of the URL that is wrong.
[[nodiscard]] Location parse_location(Url url);

// "/.rw", "/.sem", "/.elect": what the path of a kind's directory has behind the location's; "" for plain locks, whose
// files never begin with a dot.
[[nodiscard]] std::string subdirectory(LockKind kind);

// Each kind of locks has a directory: plain ones that of the location, the others one below it, which is made when it
// is first needed.
class FileBackend final : public TryBackend {
 public:
  FileBackend(BackendHost& host, Location location);
  ~FileBackend() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override;
  void try_acquire(const LockRequest& request, TryHandler done) override;
  [[nodiscard]] std::unique_ptr<Watch> watch(LockKind kind, const std::string& name,
                                             std::function<void()> changed) override;
  [[nodiscard]] std::unique_ptr<Watch> wait_for(const LockRequest& request, std::function<void()> changed) override;
  void release(const Grant& grant, ReleaseHandler done) override;
  void inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) override;
  void list(LockKind kind, Handler<std::vector<LockInfo>> done) override;
  void break_lock(LockKind kind, const std::string& name, Handler<bool> done) override;
  void forget(const Forgetting& what, Handler<std::vector<std::string>> done) override;
  void diagnose(Handler<std::vector<Finding>> done) override;

  // How much work was done since the start; any thread.
  [[nodiscard]] std::uint64_t kernel_tries() const noexcept { return client_.kernel_tries; }
  [[nodiscard]] std::uint64_t looks() const noexcept { return client_.looks; }
  [[nodiscard]] std::uint64_t wake_ups() const noexcept { return client_.wake_ups; }
  [[nodiscard]] std::uint64_t path_looks() const noexcept { return client_.path_looks; }

 private:
  // Makes its directory if need be. Throws Error.
  [[nodiscard]] LockSpace& open(LockKind kind);
  // nullptr: its directory is not there, so nothing is held. Throws Error.
  [[nodiscard]] LockSpace* find(LockKind kind);
  // Answers with what `ask` answers, or with `nothing` where the space is not there.
  template <class T, class Ask>
  void ask(LockKind kind, const Handler<T>& done, T nothing, Ask&& ask);

  const Location location_;
  ClientState client_;
  std::array<std::unique_ptr<LockSpace>, 4> spaces_;  // the first one always
};

}  // namespace dlock::file
