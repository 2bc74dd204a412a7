// A session with ZooKeeper, as a program would have it that uses the C client by itself, with its defaults.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "torture/rig/url_text.hpp"

struct _zhandle;

namespace dlock::bench {

class ZooKeeperSession {
 public:
  // To the servers and the chroot of a zookeeper:// URL, as the user that it names. Waits until the session stands;
  // throws std::runtime_error if it does not.
  explicit ZooKeeperSession(const rig::UrlText& url);
  ZooKeeperSession(const ZooKeeperSession&) = delete;
  ZooKeeperSession& operator=(const ZooKeeperSession&) = delete;

  [[nodiscard]] _zhandle* get() const noexcept { return handle_.get(); }
  // With all nodes above it that are missing.
  void make(const std::string& path) const;

 private:
  struct Close {
    void operator()(_zhandle* handle) const noexcept;
  };
  static void on_event(_zhandle* handle, int type, int state, const char* path, void* context);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool connected_ = false;
  std::unique_ptr<_zhandle, Close> handle_;
};

// Throws std::runtime_error unless the code is ZOK.
void require_ok(int code, const char* what);

}  // namespace dlock::bench
