// A limit on concurrent uploads over all hosts: each upload takes a permit of a semaphore. A permit is a lease, so an
// uploader that dies gives its permit back automatically.
//
//   rate_limit [URL]
#include <atomic>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <dlock/dlock.hpp>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "memory://";
  constexpr int permits = 3;
  try {
    std::atomic<int> under_way{0};
    std::atomic<int> most{0};
    std::atomic<int> done{0};
    {
      std::vector<std::jthread> hosts;
      for (int host = 0; host < 8; ++host) {
        hosts.emplace_back([&, host] {
          const dlock::Client client = dlock::connect(url, {.label = "host" + std::to_string(host)});
          dlock::Semaphore uploads = client.make_semaphore("uploads", permits);  // all give the same number
          for (int i = 0; i < 5; ++i) {
            dlock::with_lock(uploads, {.wait = 30s}, [&](const dlock::Lease&) {
              const int now = ++under_way;
              for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
              }
              std::this_thread::yield();  // the upload
              --under_way;
            });
            ++done;
          }
        });
      }
    }
    std::cout << done << " uploads, never more than " << permits << " at once: " << (most <= permits ? "yes" : "no")
              << '\n';

    const dlock::Client client = dlock::connect(url);
    const dlock::Lease one = client.make_semaphore("uploads", permits).acquire();
    try {
      (void)client.make_semaphore("uploads", permits + 1).acquire();
    } catch (const dlock::Error& e) {
      std::cout << e.what() << '\n';
    }
  } catch (const dlock::Error& e) {
    std::cerr << "rate_limit: " << e.what() << '\n';
    return 1;
  }
}
