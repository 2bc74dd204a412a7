// A lock by hand on the C client, one request after the other.
#pragma once

#include <string>

#include "bench/targets/floor.hpp"
#include "bench/targets/zookeeper/session.hpp"

namespace dlock::bench {

// Create a sequential node, list, delete.
class ZooKeeperQueueFloor final : public Floor {
 public:
  // Makes the lock's node.
  ZooKeeperQueueFloor(const rig::UrlText& url, std::string lock);

  void acquire() override;
  void release() override;

 private:
  ZooKeeperSession session_;
  std::string lock_;
  std::string own_;
};

// Create a node, delete.
class ZooKeeperNodeFloor final : public Floor {
 public:
  // Makes the node above the lock.
  ZooKeeperNodeFloor(const rig::UrlText& url, const std::string& parent, const std::string& name);

  void acquire() override;
  void release() override;

 private:
  ZooKeeperSession session_;
  std::string lock_;
};

}  // namespace dlock::bench
