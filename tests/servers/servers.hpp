// Local servers that wait for the disk as those in production do, to be measured.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace dlock::bench {

// A server that ends with the object.
class LocalServer {
 public:
  LocalServer() = default;
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;
  virtual ~LocalServer() = default;

  [[nodiscard]] virtual std::string url() const = 0;
};

struct LocalServerKind {
  const char* name;
  // Waits until it serves. Throws what went wrong.
  std::unique_ptr<LocalServer> (*start)();
};

// Those whose backends are built.
[[nodiscard]] std::vector<LocalServerKind> local_servers();

}  // namespace dlock::bench
