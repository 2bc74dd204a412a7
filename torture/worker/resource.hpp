// What the locks protect: a resource that refuses a write that is older than anything it has taken, and a read that is
// older than a write.
//
//   Resource resource(directory / "resource", history, {"a"});     // in the process that runs the others
//   ResourceClient client(directory / "resource");                 // in a worker
//   const bool taken = client.access(0, Mode::exclusive, lease.token());
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <dlock/lock_kind.hpp>
#include <dlock/token.hpp>

#include "torture/history/history_file.hpp"
#include "util/unique_fd.hpp"

namespace dlock::torture {

// As it goes over the socket.
struct AccessRequest {
  std::uint64_t token;
  std::uint32_t lock;  // which of the locks
  Mode mode;           // shared: it reads
};

// Serves one request after the other on a thread of its own, and notes each in the history.
class Resource {
 public:
  // Throws std::system_error. The socket's path must be short (some hundred bytes).
  Resource(const std::filesystem::path& socket, const std::filesystem::path& history, std::vector<std::string> locks,
           LockKind lock_kind = LockKind::lock);
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;
  ~Resource();

 private:
  void serve();
  // False: the client has gone.
  [[nodiscard]] bool answer(int client);

  std::vector<std::string> locks_;
  LockKind lock_kind_;
  std::vector<FencingToken> newest_;        // taken
  std::vector<FencingToken> newest_write_;  // taken
  HistoryFile history_;
  util::UniqueFd listening_;
  util::UniqueFd stop_;
  std::jthread thread_;
};

// One thread.
class ResourceClient {
 public:
  explicit ResourceClient(const std::filesystem::path& socket);
  // Whether the write or read was taken. Blocks until the resource has answered. Throws std::system_error.
  [[nodiscard]] bool access(std::size_t lock, Mode mode, FencingToken token);

 private:
  util::UniqueFd socket_;
};

}  // namespace dlock::torture
