// The lock that Redis's manual shows, on blocking hiredis: SET with NX and PX, and a script that deletes the key only
// if it still has the owner's value. No fencing token, no queue.
#pragma once

#include <string>

#include "bench/targets/floor.hpp"
#include "bench/targets/redis/connection.hpp"

namespace dlock::bench {

class RedisByHand final : public Floor {
 public:
  RedisByHand(const rig::UrlText& url, std::string key);

  void acquire() override;
  void release() override;

 private:
  RedisConnection connection_;
  std::string key_;
  std::string owner_;
  std::string release_sha_;
};

}  // namespace dlock::bench
