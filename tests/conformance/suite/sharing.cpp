// Rules of locks that several may hold: readers enter together and writers alone, permits are never more than
// there are, tokens follow the rule of the kind, and the death of one holder is its own.
#include <atomic>
#include <deque>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(sharing)

class ReadWriteContract : public SubjectContract {
 protected:
  [[nodiscard]] ReadWriteLock lock_of(const Client& client) const { return client.make_read_write_lock(name()); }
};
INSTANTIATE_TEST_SUITE_P(, ReadWriteContract, ::testing::ValuesIn(subjects_with(LockKind::read_write)),
                         name_of_subject);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ReadWriteContract);

class PermitContract : public SubjectContract {};
INSTANTIATE_TEST_SUITE_P(, PermitContract, ::testing::ValuesIn(subjects_with(LockKind::semaphore)), name_of_subject);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PermitContract);

namespace {

using namespace std::chrono_literals;

// A read-write lock as one is read.
class ToRead {
 public:
  explicit ToRead(ReadWriteLock& lock) : lock_(lock) {}
  [[nodiscard]] const std::string& name() const noexcept { return lock_.name(); }
  template <class Handler>
  void async_acquire(const AcquireOptions& options, Handler&& handler) {
    lock_.async_acquire_shared(options, std::forward<Handler>(handler));
  }

 private:
  ReadWriteLock& lock_;
};

Lease read(ReadWriteLock& lock, AcquireOptions options = {}) {
  options.wait = guard();
  return lock.acquire_shared(options);
}

Lease take(Semaphore& semaphore, AcquireOptions options = {}) {
  options.wait = guard();
  return semaphore.acquire(options);
}

}  // namespace

// --- Read-write locks ------------------------------------------------------------------------------------------------

// Shows: read-write
TEST_P(ReadWriteContract, C01_ReadersEnterTogetherAndAWriterAlone) {
  ReadWriteLock one = lock_of(client());
  ReadWriteLock two = lock_of(client());
  std::deque<Lease> readers;
  for (ReadWriteLock* each : {&one, &two, &one}) readers.push_back(read(*each));
  EXPECT_FALSE(one.try_acquire().has_value());
  EXPECT_FALSE(two.try_acquire().has_value());
  Pending writer(two, {});
  while (!readers.empty()) {
    EXPECT_FALSE(writer.done());
    ASSERT_TRUE(readers.back().release());
    EXPECT_FALSE(readers.back().release());
    readers.pop_back();
  }
  const Lease writing = writer.lease();
  EXPECT_FALSE(one.try_acquire_shared().has_value());
  EXPECT_FALSE(one.try_acquire().has_value());
}

TEST_P(ReadWriteContract, C01_NobodyReadsWhatIsBeingWritten) {
  Client& first = client();
  Client& second = client();
  std::atomic<int> readers{0};
  std::atomic<int> writers{0};
  std::atomic<int> wrong{0};
  run_threads(6, [&](int i) {
    ReadWriteLock lock = (i % 2 == 0 ? first : second).make_read_write_lock(name());
    for (int round = 0; round < 8; ++round) {
      if (i % 3 == 0) {
        const Lease writing = lock.acquire({.wait = guard()});
        if (writers.fetch_add(1) != 0 || readers.load() != 0 || !writing.held()) wrong.fetch_add(1);
        std::this_thread::yield();
        writers.fetch_sub(1);
      } else {
        const Lease reading = read(lock);
        readers.fetch_add(1);
        if (writers.load() != 0 || !reading.held()) wrong.fetch_add(1);
        std::this_thread::yield();
        readers.fetch_sub(1);
      }
    }
  });
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_TRUE(lock_of(client()).try_acquire().has_value());
}

TEST_P(ReadWriteContract, C03_LossOfOneReaderIsNoOthers) {
  DLOCK_APPLIES_IF(caps().lease_kind != LeaseKind::process, "leases do not run out by time");
  step_time_if_possible();
  ReadWriteLock lock = lock_of(client());
  ReadWriteLock other = lock_of(client());
  const Lease mine = read(lock, fixed());
  const LossEvent loss(mine);
  const Lease others = read(other);
  pass_until(loss.event(), "the end of a lease is not signalled");
  EXPECT_FALSE(mine.held());
  EXPECT_TRUE(others.held());
  EXPECT_FALSE(lock.try_acquire().has_value());
}

TEST_P(ReadWriteContract, C03_AllReadersHearThatTheirLockWasTakenAway) {
  DLOCK_NEEDS(kill_hold);
  step_time_if_possible();
  ReadWriteLock lock = lock_of(client());
  ReadWriteLock other = lock_of(client());
  const Lease one = read(lock, renewed());
  const Lease two = read(other, renewed());
  const LossEvent loss_of_one(one);
  const LossEvent loss_of_two(two);
  fixture().kill_hold(LockKind::read_write, name());
  pass_until(loss_of_one.event(), "the loss of a killed hold is not signalled");
  pass_until(loss_of_two.event(), "the loss of a killed hold is not signalled");
  EXPECT_TRUE(lock.acquire({.wait = guard()}).held());
}

// Shows: read-write
TEST_P(ReadWriteContract, C04_AWritersTokenIsTheGreatestAndAReadersGreaterThanEveryWritersBefore) {
  ReadWriteLock lock = lock_of(client());
  ReadWriteLock other = lock_of(client());
  FencingToken greatest;
  FencingToken writers;
  for (int round = 0; round < 20; ++round) {
    {
      const Lease one = read(lock);
      const Lease two = read(other);
      EXPECT_NE(one.token(), two.token());
      for (const Lease* each : {&one, &two}) {
        EXPECT_GT(each->token(), writers);
        greatest = std::max(greatest, each->token());
      }
    }
    const Lease writing = (round % 2 == 0 ? lock : other).acquire({.wait = guard()});
    EXPECT_GT(writing.token(), greatest);
    greatest = writers = writing.token();
  }
}

// Hazard: the mark of a writer that gave up keeps readers out
TEST_P(ReadWriteContract, C06_AWriterWhoGivesUpLetsReadersIn) {
  ReadWriteLock lock = lock_of(client());
  ReadWriteLock other = lock_of(client());
  const Lease reading = read(lock);
  Pending writer(other, {});
  EXPECT_FALSE(lock.try_acquire().has_value());
  writer.cancel();
  EXPECT_EQ(writer.get().error, errc::cancelled);
  EXPECT_TRUE(read(other).held());
}

// Shows: read-write
TEST_P(ReadWriteContract, C07_ADeadReadersLeaseEndsWhileOthersRenewTheirs) {
  DLOCK_NEEDS(kill_session);
  DLOCK_APPLIES_IF(caps().lease_kind == LeaseKind::per_lock, "there is no lease of the lock's own");
  step_time_if_possible();
  const auto observer = std::make_shared<RecordingObserver>();
  ReadWriteLock lock = lock_of(client({.observer = observer}));
  Client& dead = client({}, Link::disturbed);
  ReadWriteLock its = lock_of(dead);
  std::optional<Lease> reading = read(lock, renewed());
  const Lease lost = read(its, renewed());
  fixture().kill_session(dead);
  ReadWriteLock other = lock_of(client());
  Pending writer(other, {});
  pass_renewals(*observer, name(), 6);  // two leases and more
  EXPECT_FALSE(writer.done());
  if (caps().can_inspect) {
    EXPECT_EQ(client().inspect(name(), LockKind::read_write).holders.size(), 1U) << "the dead one's lease is over";
  }
  reading.reset();
  pass_until(writer.event(), "a writer does not get the lock");
  EXPECT_TRUE(writer.lease().held());
}

// Shows: read-write
TEST_P(ReadWriteContract, C11_AWriterIsNotKeptOutByReadersWhoComeAndGo) {
  Client& shared = client();
  std::atomic<bool> done{false};
  std::atomic<int> reads{0};
  std::vector<Thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      ReadWriteLock lock = shared.make_read_write_lock(name());
      while (!done) {
        const Lease reading = read(lock);
        reads.fetch_add(1);
      }
    });
  }
  while (reads < 10) std::this_thread::yield();
  std::error_code error;
  const Lease writing = lock_of(client()).acquire({.wait = guard()}, error);
  done = true;
  EXPECT_FALSE(error) << error.message();
}

TEST_P(ReadWriteContract, C12_ReadersWhoWaitEnterInOneWave) {
  ReadWriteLock lock = lock_of(client());
  ReadWriteLock other = lock_of(client());
  ToRead reading(other);
  std::optional<Lease> writing = lock.acquire({.wait = guard()});
  std::deque<Pending> readers;
  for (int i = 0; i < 5; ++i) readers.emplace_back(reading, AcquireOptions{});
  EXPECT_FALSE(lock.try_acquire_shared().has_value());
  writing.reset();
  std::deque<Lease> together;
  for (Pending& each : readers) together.push_back(each.lease());
  for (const Lease& each : together) EXPECT_TRUE(each.held());
}

// Shows: read-write
TEST_P(ReadWriteContract, C12_NobodyEntersBeforeAWriterWhoWaits) {
  DLOCK_APPLIES_IF(caps().fair && caps().counts_waiters, "waiters are not served in their order");
  ReadWriteLock lock = lock_of(client());
  ReadWriteLock other = lock_of(client());
  std::optional<Lease> reading = read(lock);
  Pending writer(other, {});
  await_waiters(LockKind::read_write, name(), 1);
  EXPECT_FALSE(lock.try_acquire_shared().has_value());
  ToRead later(lock);
  Pending reader(later, {});
  await_waiters(LockKind::read_write, name(), 2);
  reading.reset();
  std::optional<Lease> writing = writer.lease();
  EXPECT_FALSE(reader.done());
  writing.reset();
  EXPECT_TRUE(reader.lease().held());
}

TEST_P(ReadWriteContract, C14_AllHoldersAreShown) {
  DLOCK_APPLIES_IF(caps().can_inspect, "locks cannot be inspected");
  Client& asking = client();
  ReadWriteLock lock = lock_of(client({.label = "one"}));
  ReadWriteLock other = lock_of(client({.label = "two"}));
  const Lease one = read(lock);
  const Lease two = read(other);
  const LockInfo info = asking.inspect(name(), LockKind::read_write);
  EXPECT_EQ(info.kind, LockKind::read_write);
  EXPECT_TRUE(info.held);
  ASSERT_EQ(info.holders.size(), 2U);
  for (const HolderInfo& each : info.holders) {
    EXPECT_EQ(each.mode, Mode::shared);
    EXPECT_TRUE(each.holder.ends_with(":one") || each.holder.ends_with(":two")) << each.holder;
  }
  EXPECT_NE(info.holders[0].holder, info.holders[1].holder);
  EXPECT_FALSE(asking.inspect(name()).held) << "kinds do not touch each other";
}

TEST_P(ReadWriteContract, C15_StandardGuardsWork) {
  ReadWriteLock lock = lock_of(client());
  ReadWriteLock other = lock_of(client());
  {
    const std::shared_lock one(lock);
    const std::shared_lock two(other, std::try_to_lock);
    EXPECT_TRUE(two.owns_lock());
    EXPECT_THROW(lock.lock_shared(), Error);
  }
  {
    const std::unique_lock one(lock);
    EXPECT_FALSE(other.try_lock_shared());
  }
  EXPECT_TRUE(other.try_acquire().has_value());
}

// --- Semaphores ------------------------------------------------------------------------------------------------------

// Shows: semaphores
// Hazard: permits counted in separate rows, or before the wait: too many get in
TEST_P(PermitContract, C01_NoMoreThanAllPermitsAreOut) {
  constexpr int permits = 3;
  Client& first = client();
  Client& second = client();
  std::atomic<int> inside{0};
  std::atomic<int> wrong{0};
  run_threads(8, [&](int i) {
    Semaphore semaphore = (i % 2 == 0 ? first : second).make_semaphore(name(), permits);
    for (int round = 0; round < 8; ++round) {
      const Lease permit = take(semaphore);
      if (inside.fetch_add(1) >= permits || !permit.held()) wrong.fetch_add(1);
      std::this_thread::yield();
      inside.fetch_sub(1);
    }
  });
  EXPECT_EQ(wrong.load(), 0);
  // Nothing is left behind: all of them can be had at once.
  Semaphore semaphore = first.make_semaphore(name(), permits);
  std::deque<Lease> all;
  for (int i = 0; i < permits; ++i) {
    auto permit = semaphore.try_acquire();
    ASSERT_TRUE(permit.has_value()) << i;
    for (const Lease& each : all) EXPECT_NE(each.token(), permit->token());
    all.push_back(std::move(*permit));
  }
  EXPECT_FALSE(semaphore.try_acquire().has_value());
}

// Shows: semaphores
TEST_P(PermitContract, C07_ThePermitOfADeadHolderComesBack) {
  DLOCK_APPLIES_IF(caps().lease_kind != LeaseKind::process, "leases do not run out by time");
  step_time_if_possible();
  Semaphore semaphore = client().make_semaphore(name(), 2);
  Semaphore other = client().make_semaphore(name(), 2);
  const Lease dying = take(semaphore, fixed());
  const LossEvent loss(dying);
  const Lease living = take(other);
  Pending waiting(other, {});
  EXPECT_FALSE(waiting.done());
  pass_until(loss.event(), "the end of a lease is not signalled");
  pass_until(waiting.event(), "a permit does not come back");
  EXPECT_TRUE(waiting.lease().held());
  EXPECT_TRUE(living.held());
}

TEST_P(PermitContract, C09_AnotherNumberOfPermitsIsRefusedWhileTheyAreInUse) {
  Semaphore two = client().make_semaphore(name(), 2);
  Semaphore three = client().make_semaphore(name(), 3);
  std::optional<Lease> permit = take(two);
  std::error_code error;
  EXPECT_FALSE(three.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::invalid_argument);
  try {
    (void)three.acquire({.wait = guard()});
    ADD_FAILURE() << "another number of permits must be refused";
  } catch (const Error& refused) {
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    const std::string text = refused.what();
    EXPECT_NE(text.find('2'), std::string::npos) << text;
    EXPECT_NE(text.find('3'), std::string::npos) << text;
  }
  permit.reset();
  EXPECT_TRUE(take(three).held());
}

TEST_P(PermitContract, C12_PermitsGoToThoseWhoWaitInTheirOrder) {
  DLOCK_APPLIES_IF(caps().fair && caps().counts_waiters, "waiters are not served in their order");
  Semaphore semaphore = client().make_semaphore(name(), 2);
  std::deque<Lease> held;
  for (int i = 0; i < 2; ++i) held.push_back(take(semaphore));
  std::deque<Pending> waiters;
  for (std::uint64_t i = 0; i < 4; ++i) {
    waiters.emplace_back(semaphore, AcquireOptions{});
    await_waiters(LockKind::semaphore, name(), i + 1);
  }
  EXPECT_FALSE(semaphore.try_acquire().has_value());
  for (Pending& next : waiters) {
    ASSERT_TRUE(held.front().release());
    held.pop_front();
    held.push_back(next.lease());
  }
}

TEST_P(PermitContract, C14_PermitsAndTheirHoldersAreShown) {
  DLOCK_APPLIES_IF(caps().can_inspect, "locks cannot be inspected");
  Client& asking = client();
  Semaphore semaphore = client().make_semaphore(name(), 5);
  const Lease one = take(semaphore);
  const Lease two = take(semaphore);
  const LockInfo info = asking.inspect(name(), LockKind::semaphore);
  EXPECT_EQ(info.kind, LockKind::semaphore);
  EXPECT_EQ(info.permits, 5U);
  EXPECT_EQ(info.holders.size(), 2U);
}

}  // namespace dlock::conformance
