// A cache that many read and one refreshes: readers hold the lock together. A reader that finds the cache too old
// becomes the writer, alone, checks again, and refreshes it once for all.
//
//   price_cache [URL]
#include <atomic>
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include <dlock/dlock.hpp>

namespace {

// Stands for a file or a table that several hosts share. It remembers the newest tokens, because a holder that was
// stopped for longer than its lease may come back: a write needs a token no smaller than any that was seen, a read one
// no smaller than the greatest writer's. Its own mutex is what a database does for each statement.
class Cache {
 public:
  bool write(int version, dlock::FencingToken token) {
    const std::lock_guard guard(mutex_);
    if (token < newest_) return false;
    newest_ = newest_writer_ = token;
    version_ = version;
    return true;
  }
  bool read(int& version, dlock::FencingToken token) {
    const std::lock_guard guard(mutex_);
    if (token < newest_writer_) return false;
    if (newest_ < token) newest_ = token;
    version = version_;
    return true;
  }

 private:
  std::mutex mutex_;
  int version_ = 0;
  dlock::FencingToken newest_;
  dlock::FencingToken newest_writer_;
};

// The newest version, after a refresh if the cache is older. Returns whether this call refreshed it.
bool use(const dlock::Client& client, Cache& cache, int newest) {
  dlock::ReadWriteLock lock = client.make_read_write_lock("prices");
  int version = 0;
  {
    const std::shared_lock reading(lock);
    if (cache.read(version, lock.lease().token()) && version == newest) return false;
  }
  const std::unique_lock writing(lock);  // another may have been quicker meanwhile
  if (cache.read(version, lock.lease().token()) && version == newest) return false;
  return cache.write(newest, lock.lease().token());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "memory://";
  try {
    Cache cache;
    for (int newest = 1; newest <= 3; ++newest) {
      std::atomic<int> refreshed{0};
      {
        std::vector<std::jthread> readers;
        for (int i = 0; i < 5; ++i) {
          readers.emplace_back([&] {
            const dlock::Client client = dlock::connect(url);
            if (use(client, cache, newest)) ++refreshed;
          });
        }
      }
      std::cout << "version " << newest << " was fetched " << refreshed << " time(s) for 5 readers\n";
    }
  } catch (const dlock::Error& e) {
    std::cerr << "price_cache: " << e.what() << '\n';
    return 1;
  }
}
