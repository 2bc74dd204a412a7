// Read-write locks of Curator and kazoo on the nodes of ours, by these programs themselves.
#include <atomic>
#include <future>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "zookeeper/interoperation_test.hpp"

namespace dlock::test {

namespace {

constexpr LockKind kind = LockKind::read_write;

// A read-write lock of another program, and a client of ours.
struct Sides {
  Pair reader;
  Pair writer;
  // kazoo 2.8: a reader that waits waits for writers that came after it, too, which wait for the reader.
  bool readers_wait_in_order;

  friend std::ostream& operator<<(std::ostream& out, const Sides& sides) { return out << sides.writer; }
};

constexpr Sides libraries[] = {
    {{Library::curator, "readLock", "layout=curator"}, {Library::curator, "writeLock", "layout=curator"}, true},
    {{Library::kazoo, "ReadLock", "layout=kazoo"}, {Library::kazoo, "WriteLock", "layout=kazoo"}, false}};

// A read-write lock as one is read.
class Reading {
 public:
  explicit Reading(ReadWriteLock& lock) : lock_(lock) {}
  [[nodiscard]] const std::string& name() const noexcept { return lock_.name(); }
  template <class Handler>
  void async_acquire(const AcquireOptions& options, Handler&& handler) {
    lock_.async_acquire_shared(options, std::forward<Handler>(handler));
  }

 private:
  ReadWriteLock& lock_;
};

class ReadWriteInteroperationTest : public InteroperationTest {};

TEST_F(ReadWriteInteroperationTest, TheirReadersAndOurs_ShareAndWritersExclude) {
  for (const Sides& sides : libraries) {
    SCOPED_TRACE(sides);
    const std::string name = new_name();
    const Client client = client_of(sides.reader);
    ReadWriteLock lock = client.make_read_write_lock(name);
    ReadWriteLock other = client.make_read_write_lock(name);
    const ForeignLock reader = foreign(sides.reader, name, kind);
    const ForeignLock writer = foreign(sides.writer, name, kind);

    ASSERT_EQ(reader.ask("acquire"), "held");
    std::optional<Lease> reading = lock.try_acquire_shared();
    ASSERT_TRUE(reading.has_value());
    EXPECT_FALSE(other.try_acquire().has_value());
    EXPECT_EQ(writer.ask("try"), "busy");
    EXPECT_EQ(client.inspect(name, kind).holders.size(), 2U);
    Pending ours(other, {});
    await_residue(name, 3, kind);
    EXPECT_EQ(reader.ask("release"), "free");
    EXPECT_FALSE(ours.done());
    reading.reset();
    std::optional<Lease> writing = ours.lease();

    EXPECT_EQ(reader.ask("try"), "busy");
    EXPECT_EQ(writer.ask("try"), "busy");
    const ForeignAnswer answer = writer.begin("acquire");
    await_residue(name, 2, kind);
    EXPECT_FALSE(answer.given());
    writing.reset();
    EXPECT_EQ(answer.get(), "held");
    EXPECT_FALSE(lock.try_acquire_shared().has_value());
    EXPECT_FALSE(lock.try_acquire().has_value());
    EXPECT_EQ(writer.ask("release"), "free");
    EXPECT_TRUE(lock.try_acquire_shared().has_value());
  }
}

TEST_F(ReadWriteInteroperationTest, MixedQueue_IsServedInOrder) {
  for (const Sides& sides : libraries) {
    SCOPED_TRACE(sides);
    const std::string name = new_name();
    const Client client = client_of(sides.reader);
    ReadWriteLock first = client.make_read_write_lock(name);
    ReadWriteLock second = client.make_read_write_lock(name);
    Reading second_read(second);
    ReadWriteLock third = client.make_read_write_lock(name);
    ReadWriteLock fourth = client.make_read_write_lock(name);
    Reading fourth_read(fourth);
    const ForeignLock their_reader = foreign(sides.reader, name, kind);
    const ForeignLock their_writer = foreign(sides.writer, name, kind);

    Lease held = take(first);
    // Behind it: readers of both, their writer, our reader, our writer.
    std::optional<ForeignAnswer> they_read;
    if (sides.readers_wait_in_order) they_read = their_reader.begin("acquire");
    std::size_t count = sides.readers_wait_in_order ? 2 : 1;
    await_residue(name, count, kind);
    Pending we_read(second_read, {});
    await_residue(name, ++count, kind);
    const ForeignAnswer they_write = their_writer.begin("acquire");
    await_residue(name, ++count, kind);
    Pending later_read(fourth_read, {});
    await_residue(name, ++count, kind);
    Pending later_write(third, {});
    await_residue(name, ++count, kind);
    EXPECT_FALSE(we_read.done());
    EXPECT_TRUE(held.release());
    Lease reading = we_read.lease();
    if (they_read) {
      EXPECT_EQ(they_read->get(), "held");
    }
    EXPECT_FALSE(they_write.given());
    EXPECT_TRUE(reading.release());
    if (they_read) {
      EXPECT_EQ(their_reader.ask("release"), "free");
    }
    EXPECT_EQ(they_write.get(), "held");
    EXPECT_FALSE(later_read.done());
    EXPECT_EQ(their_writer.ask("release"), "free");
    reading = later_read.lease();
    EXPECT_FALSE(later_write.done());
    EXPECT_TRUE(reading.release());
    EXPECT_TRUE(later_write.lease().held());
    await_no_residue(name, kind);
  }
}

TEST_F(ReadWriteInteroperationTest, MutexAtTheSameNode_IsRefused) {
  for (const Pair& pair : {Pair{Library::curator, "InterProcessMutex", "layout=curator"},
                           Pair{Library::kazoo, "CuratorLock", "layout=kazoo"}}) {
    SCOPED_TRACE(pair);
    const std::string name = new_name();
    const Client client = client_of(pair);
    ReadWriteLock lock = client.make_read_write_lock(name);
    const ForeignLock theirs = foreign(pair, name, kind);
    ASSERT_EQ(theirs.ask("acquire"), "held");
    std::error_code error;
    EXPECT_FALSE(lock.try_acquire({}, error).has_value());
    EXPECT_EQ(error, errc::protocol);
    EXPECT_FALSE(lock.try_acquire_shared({}, error).has_value());
    EXPECT_EQ(error, errc::protocol);
    EXPECT_EQ(residue(name, kind), 1U);
    EXPECT_EQ(theirs.ask("release"), "free");
    EXPECT_TRUE(lock.try_acquire().has_value());
  }
}

}  // namespace

}  // namespace dlock::test
