// Contract 1: two leases on one name are never both held at one instant.
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(exclusion)

namespace {

constexpr std::size_t contenders = 100;

// What the lock protects: a counter whose increment is not atomic, and a sign on the door.
class Room {
 public:
  void visit() {
    if (occupied_.exchange(true)) meetings_.fetch_add(1);
    const int value = counter_.load(std::memory_order_relaxed);
    std::this_thread::yield();
    counter_.store(value + 1, std::memory_order_relaxed);
    occupied_.store(false);
  }
  [[nodiscard]] int counter() const { return counter_.load(); }
  [[nodiscard]] int meetings() const { return meetings_.load(); }

 private:
  std::atomic<int> counter_{0};
  std::atomic<int> meetings_{0};
  std::atomic<bool> occupied_{false};
};

}  // namespace

TEST_P(Contract, C01_WhileOneHoldsNobodyElseEnters) {
  Lock& mine = lock_of(client());
  Lock& others = lock_of(client());
  const Lease lease = take(mine);
  EXPECT_TRUE(lease.held());
  EXPECT_FALSE(others.try_acquire().has_value());
  EXPECT_TRUE(lease.held());
}

TEST_P(Contract, C01_LocksOfOneClientExcludeEachOtherToo) {
  Client& both = client();
  Lock& mine = lock_of(both);
  Lock& others = lock_of(both);
  const Lease lease = take(mine);
  EXPECT_FALSE(mine.try_acquire().has_value());
  EXPECT_FALSE(others.try_acquire().has_value());
}

TEST_P(Contract, C01_AHundredThreadsCountWithoutLosingOne) {
  const std::array<Lock*, 4> locks{&lock_of(client()), &lock_of(client()), &lock_of(client()), &lock_of(client())};
  Room room;
  std::atomic<int> failures{0};
  run_threads(contenders, [&](std::size_t i) {
    Lock* const lock = locks.at(i % locks.size());
    std::error_code error;
    const Lease lease = lock->acquire({.wait = guard()}, error);
    if (error) {
      failures.fetch_add(1);
    } else {
      room.visit();
    }
  });
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(room.meetings(), 0);
  EXPECT_EQ(room.counter(), static_cast<int>(contenders));
}

TEST_P(Contract, C01_AHundredAsynchronousContendersCountWithoutLosingOne) {
  const std::array<Lock*, 4> locks{&lock_of(client()), &lock_of(client()), &lock_of(client()), &lock_of(client())};
  Room room;
  std::vector<Pending> all;
  for (std::size_t i = 0; i < contenders; ++i) {
    all.emplace_back(*locks.at(i % locks.size()), AcquireOptions{}, [&room](Lease& lease) {
      room.visit();
      release_soon(std::move(lease));
    });
  }
  for (Pending& each : all) EXPECT_FALSE(each.get().error);
  EXPECT_EQ(room.meetings(), 0);
  EXPECT_EQ(room.counter(), static_cast<int>(contenders));
}

TEST_P(Contract, C01_ProcessesCountWithoutLosingOne) {
  DLOCK_NEEDS(processes);
  constexpr int processes = 4;
  constexpr int times = 25;
  std::string directory = (std::filesystem::temp_directory_path() / "dlock-conformance-XXXXXX").string();
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const std::string file = directory + "/counter";
  std::ofstream(file) << 0;
  {
    std::vector<Worker> workers;
    for (int i = 0; i < processes; ++i) workers.push_back(worker());
    for (Worker& each : workers) each.send("count " + name() + " " + file + " " + std::to_string(times));
    for (Worker& each : workers) EXPECT_EQ(each.receive(), "counted");
  }
  int counted = 0;
  std::ifstream(file) >> counted;
  std::filesystem::remove_all(directory);
  EXPECT_EQ(counted, processes * times);
}

TEST_P(Contract, C01_ALeaseThatRanOutIsNotHeldWhenTheNextHolderEnters) {
  step_time_if_possible();
  Lock& first_lock = lock_of(client());
  Lock& next_lock = lock_of(client());
  const Lease first = take(first_lock, fixed());
  bool both_held = false;
  Pending next(next_lock, {}, [&](Lease& lease) { both_held = lease.held() && first.held(); });
  pass_until(next.event(), "nobody enters after a lease has run out");
  EXPECT_FALSE(both_held);
  EXPECT_FALSE(first.held());
  EXPECT_TRUE(next.lease().held());
}

TEST_P(Contract, C01_AHolderCutOffIsNotHeldWhenTheNextHolderEnters) {
  DLOCK_NEEDS(cut);
  DLOCK_APPLIES_IF(caps().lease_kind != LeaseKind::process, "leases do not run out by time");
  step_time_if_possible();
  Lock& first_lock = lock_of(client({.lease = lease()}, Link::disturbed));
  Lock& next_lock = lock_of(client());
  const Lease first = take(first_lock);
  fixture().cut();
  bool both_held = false;
  Pending next(next_lock, {}, [&](Lease& lease) { both_held = lease.held() && first.held(); });
  pass_until(next.event(), "nobody enters after the holder was cut off for a whole lease");
  EXPECT_FALSE(both_held);
  EXPECT_FALSE(first.held());
  EXPECT_TRUE(next.lease().held());
  fixture().heal();
}

}  // namespace dlock::conformance
