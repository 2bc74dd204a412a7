#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string>

#include <benchmark/benchmark.h>

#include "service.hpp"

namespace bench {

namespace {

bool set_lock(int fd, short type) {
  struct flock request = {};
  request.l_type = type;
  request.l_whence = SEEK_SET;
  return ::fcntl(fd, F_OFD_SETLK, &request) == 0;
}

void open_lock_unlock_close(benchmark::State& state, const ScratchDirectory& directory) {
  const std::string path = directory.path() + "/floor-" + std::to_string(state.thread_index());
  for (auto _ : state) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || !set_lock(fd, F_WRLCK) || !set_lock(fd, F_UNLCK)) state.SkipWithError("cannot lock a file");
    if (fd >= 0) ::close(fd);
  }
  state.SetItemsProcessed(state.iterations());
}

}  // namespace

void register_file_floor(const std::shared_ptr<ScratchDirectory>& directory) {
  benchmark::RegisterBenchmark("file/floor/open_lock_unlock_close",
                               [directory](benchmark::State& state) { open_lock_unlock_close(state, *directory); })
      ->UseRealTime()
      ->Threads(1)
      ->Threads(8)
      ->Threads(64);
}

}  // namespace bench
