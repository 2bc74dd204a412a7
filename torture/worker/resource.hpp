// The resource that the locks protect. It refuses writes with a smaller token than any that it has accepted, and reads
// with a smaller one than that of any write.
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

// The message over the socket.
struct AccessRequest {
  std::uint64_t token;
  std::uint32_t lock;  // the lock's index
  Mode mode;           // shared: it reads
};

// Serves requests one by one on its own thread, and records each in the history.
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
  // False: the client has closed the connection.
  [[nodiscard]] bool answer(int client);

  std::vector<std::string> locks_;
  LockKind lock_kind_;
  std::vector<FencingToken> newest_;        // accepted
  std::vector<FencingToken> newest_write_;  // accepted
  HistoryFile history_;
  util::UniqueFd listening_;
  util::UniqueFd stop_;
  std::jthread thread_;
};

// Use it on one thread.
class ResourceClient {
 public:
  explicit ResourceClient(const std::filesystem::path& socket);
  // Returns whether the access was accepted. Blocks until the resource has answered. Throws std::system_error.
  [[nodiscard]] bool access(std::size_t lock, Mode mode, FencingToken token);

 private:
  util::UniqueFd socket_;
};

}  // namespace dlock::torture
