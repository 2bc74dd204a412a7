// A lock by hand: two transactions, one after the other.
#pragma once

#include <cstdint>
#include <string>

#include "bench/targets/etcd/connection.hpp"
#include "bench/targets/floor.hpp"

namespace dlock::bench {

class EtcdFloor final : public Floor {
 public:
  // Has a lease, which is longer than any measurement.
  EtcdFloor(const rig::UrlText& url, std::string key);
  ~EtcdFloor() override;

  // If the key was never made: put it.
  void acquire() override;
  // If it is ours: delete it.
  void release() override;

 private:
  EtcdConnection connection_;
  std::string key_;
  std::uint64_t lease_ = 0;
  std::uint64_t revision_ = 0;  // which made the key
};

}  // namespace dlock::bench
