// The same lock written by hand on blocking hiredis: SET NX PX, and EVALSHA of compare-and-delete. No fencing token, no
// waiting, no renewal, no deadline: what dlock is measured against.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

struct redisContext;

namespace bench {

class Floor {
 public:
  // Throws std::runtime_error if there is no server.
  explicit Floor(std::uint16_t port);

  // False: somebody else holds it. Throws std::runtime_error when the connection breaks.
  [[nodiscard]] bool acquire(const std::string& key, const std::string& token);
  [[nodiscard]] bool release(const std::string& key, const std::string& token);

 private:
  struct Close {
    void operator()(redisContext* context) const noexcept;
  };

  std::unique_ptr<redisContext, Close> context_;
  std::string release_sha_;
};

}  // namespace bench
