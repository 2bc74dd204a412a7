// What a user's program does with dlock, in little: takes a lock on each embedded backend and on one of its own.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <future>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>

#include <dlock/dlock.hpp>

#include "table_backend.hpp"

namespace {

using namespace std::chrono_literals;

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("expected: " + what);
}

// The directory of the file backend; gone when the program ends.
class ScratchDirectory {
 public:
  ScratchDirectory() : path_((std::filesystem::temp_directory_path() / "dlock-consumer-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no scratch directory");
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() {
    std::error_code ignored;  // what is left is only rubbish in the temporary directory
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

void use(const std::string& url) {
  const dlock::Client client = dlock::connect(url);
  dlock::DistributedLock lock = client.make_lock("orders/42");

  dlock::Lease lease = lock.acquire({.wait = 10s});
  require(lease.held(), "a granted lease is held");
  require(!lock.try_acquire(), "a second try finds the lock busy");

  std::promise<dlock::Lease> granted;
  lock.async_acquire({.wait = 30s}, [&](std::error_code ec, dlock::Lease next) {
    if (ec) {
      granted.set_exception(std::make_exception_ptr(std::system_error(ec)));
    } else {
      granted.set_value(std::move(next));
    }
  });
  const dlock::FencingToken first = lease.token();
  require(lease.release(), "the lease was still ours");
  dlock::Lease next = granted.get_future().get();
  require(next.token() > first, "tokens grow");
  require(next.release(), "the second lease was still ours");

  const std::scoped_lock guard(lock);
  require(lock.lease().held(), "a standard guard takes the lock");
}

}  // namespace

int main() {
  try {
    const ScratchDirectory directory;
    dlock::register_backend("table", outside::make_table_backend);
    for (const std::string& url : {std::string("memory://"), "file://" + directory.path(), std::string("table://")}) {
      use(url);
      std::cout << url << " works\n";
    }
    return EXIT_SUCCESS;
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return EXIT_FAILURE;
  }
}
