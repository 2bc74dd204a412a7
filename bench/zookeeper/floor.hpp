// The same lock written by hand on the C client: create, list, delete, one after the other. No waiting, no loss signal,
// no deadline, nothing done about lost answers: what dlock is measured against.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

struct _zhandle;

namespace bench {

class Floor {
 public:
  // Whether the client library looks the hosts up again on every turn of its loop, as it does unless told otherwise.
  enum class Resolution { by_default, never };

  // Waits until the session stands. Throws std::runtime_error if it does not.
  Floor(const std::string& addresses, Resolution resolution);

  // With all nodes above it.
  void make_parent(const std::string& path) const;
  // The path of the node that holds the lock below `parent`. Throws std::runtime_error if somebody else holds it.
  [[nodiscard]] std::string acquire(const std::string& parent) const;
  void release(const std::string& node) const;

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

}  // namespace bench
