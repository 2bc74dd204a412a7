#include "bench/targets/zookeeper/removal.hpp"

#include <zookeeper/zookeeper.h>

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "bench/targets/zookeeper/session.hpp"

namespace dlock::bench {

namespace {

// Clients that are just closing may still make nodes where some are being removed.
constexpr int most_attempts = 100;
// A server that waits for the disk does so once for many requests, if it has many.
constexpr std::size_t most_under_way = 1000;

std::vector<std::string> children_of(_zhandle* handle, const std::string& path) {
  String_vector list{};
  const int code = zoo_get_children(handle, path.c_str(), 0, &list);
  if (code == ZNONODE) return {};
  require_ok(code, "get_children");
  std::vector<std::string> paths;
  paths.reserve(static_cast<std::size_t>(list.count));
  for (int i = 0; i < list.count; ++i) paths.push_back(path + "/" + list.data[i]);
  (void)deallocate_String_vector(&list);
  return paths;
}

// Each node after those below it.
void collect(_zhandle* handle, const std::string& path, std::vector<std::string>& paths) {
  for (const std::string& each : children_of(handle, path)) collect(handle, each, paths);
  paths.push_back(path);
}

// Removals that are under way; their answers come on a thread of the library, each once, also when the connection ends.
class Removals {
 public:
  explicit Removals(_zhandle* handle) : handle_(handle) {}
  Removals(const Removals&) = delete;
  Removals& operator=(const Removals&) = delete;
  ~Removals() { await(0); }

  void begin(const std::string& path) {
    await(most_under_way - 1);
    {
      const std::scoped_lock lock(mutex_);
      ++under_way_;
    }
    const int code = zoo_adelete(handle_, path.c_str(), -1, &Removals::on_answer, this);
    if (code != ZOK) answered(code);
  }
  // Waits for all. False: something is below a node that was to be removed. Throws if anything else went wrong.
  bool finish() {
    await(0);
    const std::scoped_lock lock(mutex_);
    require_ok(failure_, "delete");
    return !not_empty_;
  }

 private:
  static void on_answer(int code, const void* context) {
    static_cast<Removals*>(const_cast<void*>(context))->answered(code);
  }
  void answered(int code) {
    const std::scoped_lock lock(mutex_);
    --under_way_;
    if (code == ZNOTEMPTY) {
      not_empty_ = true;
    } else if (code != ZOK && code != ZNONODE) {
      failure_ = code;
    }
    changed_.notify_all();
  }
  void await(std::size_t at_most) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return under_way_ <= at_most; });
  }

  _zhandle* handle_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::size_t under_way_ = 0;
  bool not_empty_ = false;
  int failure_ = ZOK;
};

}  // namespace

// The requests of a session are carried out in order, so that nodes are empty when their turn comes.
void remove_tree(_zhandle* handle, const std::string& path) {
  for (int i = 0; i < most_attempts; ++i) {
    std::vector<std::string> paths;
    collect(handle, path, paths);
    Removals removals(handle);
    for (const std::string& each : paths) removals.begin(each);
    if (removals.finish()) return;
  }
  throw std::runtime_error("ZooKeeper: another client keeps creating nodes below " + path);
}

}  // namespace dlock::bench
