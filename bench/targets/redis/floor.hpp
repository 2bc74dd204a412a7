// A lock by hand on blocking hiredis: SET NX PX, and EVALSHA of compare-and-delete. No fencing token.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "bench/targets/floor.hpp"
#include "bench/targets/redis/connection.hpp"

namespace dlock::bench {

class RedisFloor final : public Floor {
 public:
  // The counter counts what floors have SET: the server counts that together with what scripts do.
  RedisFloor(const UrlText& url, std::string key, std::shared_ptr<std::atomic<std::uint64_t>> sets);

  void acquire() override;
  void release() override;

 private:
  RedisConnection connection_;
  std::string key_;
  std::string owner_;
  std::string release_sha_;
  std::shared_ptr<std::atomic<std::uint64_t>> sets_;
};

}  // namespace dlock::bench
