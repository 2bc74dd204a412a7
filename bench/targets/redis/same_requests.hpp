// The scripts that dlock runs in the server, on blocking hiredis.
#pragma once

#include <array>
#include <string>

#include "bench/targets/floor.hpp"
#include "bench/targets/redis/connection.hpp"

#include "backends/redis/requests/keys.hpp"

namespace dlock::bench {

class RedisSameRequests final : public Floor {
 public:
  // sharded: as dlock runs them on a cluster.
  RedisSameRequests(const rig::UrlText& url, const redis::Keys& keys, bool sharded);

  void acquire() override;
  void release() override;

 private:
  RedisConnection connection_;
  redis::Keys keys_;
  std::array<std::string, 3> publish_arguments_;
  std::string owner_;
  std::string acquire_sha_;
  std::string release_sha_;
};

}  // namespace dlock::bench
