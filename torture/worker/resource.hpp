// What the locks protect: a resource that refuses what is older than the newest it has seen.
//
//   Resource resource(directory / "resource", history, 2);     // in the process that runs the others
//   ResourceClient client(directory / "resource");             // in a worker
//   const bool taken = client.write(0, lease.token());
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <dlock/token.hpp>

#include "torture/history/history_file.hpp"
#include "util/unique_fd.hpp"

namespace dlock::torture {

// As it goes over the socket.
struct WriteRequest {
  std::uint64_t token;
  std::uint32_t lock;  // which of the locks
  std::uint32_t unused;
};

// Serves one request after the other on a thread of its own, and notes each in the history.
class Resource {
 public:
  // Throws std::system_error. The socket's path must be short (some hundred bytes).
  Resource(const std::filesystem::path& socket, const std::filesystem::path& history, std::vector<std::string> locks);
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;
  ~Resource();

 private:
  void serve();
  // False: the client has gone.
  [[nodiscard]] bool answer(int client);

  std::vector<std::string> locks_;
  std::vector<FencingToken> newest_;
  HistoryFile history_;
  util::UniqueFd listening_;
  util::UniqueFd stop_;
  std::jthread thread_;
};

// One thread.
class ResourceClient {
 public:
  explicit ResourceClient(const std::filesystem::path& socket);
  // Whether the write was taken. Blocks until the resource has answered. Throws std::system_error.
  [[nodiscard]] bool write(std::size_t lock, FencingToken token);

 private:
  util::UniqueFd socket_;
};

}  // namespace dlock::torture
