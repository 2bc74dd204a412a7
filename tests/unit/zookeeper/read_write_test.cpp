// Read-write locks: who waits for whom, and what is believed of others' nodes.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend_fixture.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::zookeeper {

namespace {

class ReadWriteTest : public BackendTest {
 protected:
  static constexpr auto place = "/dlock.rw/lock";

  std::unique_ptr<Attempt> ask(Mode mode, bool wait = true) {
    return contend(*backend, {.kind = LockKind::read_write, .mode = mode, .wait = wait});
  }
  std::unique_ptr<Attempt> read(bool wait = true) { return ask(Mode::shared, wait); }
  std::unique_ptr<Attempt> write(bool wait = true) { return ask(Mode::exclusive, wait); }
  std::vector<std::string> nodes() const { return own_nodes(place, LockKind::read_write); }
  std::string put_reader() { return put_node(place, "-__READ__"); }
  std::string put_writer() { return put_node(place, "-__WRIT__"); }
  std::vector<std::string> watched_since(std::size_t start) const {
    std::vector<std::string> paths;
    for (std::size_t i = start; i < ensemble.requests.size(); ++i) {
      if (ensemble.requests[i].watch != 0) paths.push_back(ensemble.requests[i].path);
    }
    return paths;
  }
};

TEST_F(ReadWriteTest, OnlyTheQueueWhoseWaitersWatchOneHasThem) {
  EXPECT_TRUE(backend->capabilities().read_write_locks);
  EXPECT_FALSE(make("strategy=sequential-herd")->capabilities().read_write_locks);
  EXPECT_FALSE(make("strategy=ephemeral")->capabilities().read_write_locks);
}

TEST_F(ReadWriteTest, TheNodesAreAsOthersExpectThem) {
  const auto reader = read();
  const auto writer = write();
  const auto found = nodes();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NE(found[0].find("-__READ__"), std::string::npos) << found[0];
  EXPECT_NE(found[1].find("-__WRIT__"), std::string::npos) << found[1];
  EXPECT_EQ(ensemble.data(found[0]), "host:1:test");
}

TEST_F(ReadWriteTest, TheNodesAreKazoosWhereItsLayoutIsAskedFor) {
  backend = make("layout=kazoo");
  const auto reader = read();
  EXPECT_TRUE(reader->grant);
  EXPECT_NE(ensemble.children(place).front().find("__rlock__"), std::string::npos);
  (void)release(*backend, *reader);
  const auto writer = write();
  EXPECT_TRUE(writer->grant);
  EXPECT_NE(ensemble.children(place).front().find("__lock__"), std::string::npos);
  EXPECT_FALSE(read()->grant);
}

TEST_F(ReadWriteTest, AGrantSaysWhatItIsOf) {
  const auto reader = read();
  ASSERT_TRUE(reader->grant);
  EXPECT_EQ(reader->grant->kind, LockKind::read_write);
  EXPECT_EQ(reader->grant->mode, Mode::shared);
  EXPECT_EQ(reader->grant->token.value(), static_cast<std::uint64_t>(ensemble.stat(nodes().at(0)).created));
}

TEST_F(ReadWriteTest, ReadersEnterTogetherAndAWriterAlone) {
  const auto one = read();
  const auto two = read();
  const auto writer = write();
  EXPECT_TRUE(one->grant && two->grant);
  EXPECT_FALSE(writer->grant);
  (void)release(*backend, *two);
  EXPECT_FALSE(writer->grant);
  (void)release(*backend, *one);
  EXPECT_TRUE(writer->grant);
  EXPECT_FALSE(read()->grant);
}

TEST_F(ReadWriteTest, NobodyEntersBeforeAWriterWhoWaits) {
  const auto reading = read();
  const auto writer = write();
  EXPECT_EQ(read(false)->busy_reports, 1);
  const auto later = read();
  const auto neighbour = read();
  EXPECT_FALSE(later->grant);
  (void)release(*backend, *reading);
  ASSERT_TRUE(writer->grant);
  EXPECT_FALSE(later->grant);
  (void)release(*backend, *writer);
  EXPECT_TRUE(later->grant && neighbour->grant);
}

TEST_F(ReadWriteTest, ATryOfALockThatWasBusyLooksAndJoinsWhereItFits) {
  const std::string writer = put_writer();
  EXPECT_EQ(read(false)->busy_reports, 1);
  const std::size_t before = ensemble.requests.size();
  EXPECT_EQ(read(false)->busy_reports, 1);
  EXPECT_EQ(requests_since(before, Kind::create), 0U);
  (void)put_reader();
  ensemble.remove(writer);
  EXPECT_EQ(write(false)->busy_reports, 1);
  EXPECT_TRUE(read(false)->grant);
}

TEST_F(ReadWriteTest, AReaderWatchesTheNearestWriterAndAWriterTheNearestNode) {
  (void)put_writer();
  const std::string nearest = put_writer();
  const std::string reader = put_reader();
  std::size_t start = ensemble.requests.size();
  const auto reading = read();
  EXPECT_EQ(watched_since(start), std::vector<std::string>{nearest});
  const std::string own = nodes().at(0);
  start = ensemble.requests.size();
  const auto writing = write();
  EXPECT_EQ(watched_since(start), std::vector<std::string>{own});
}

// Since Curator 5.5 the node that reads on has the writer's number.
TEST_F(ReadWriteTest, AWriterWhoGoesOnToReadIsWaitedForByTheNextWriterOnly) {
  const std::string theirs = put_writer();
  const auto reading = read();
  const auto writing = write();
  const std::string number = theirs.substr(theirs.size() - 10);
  const std::string reader =
      ensemble.put(std::string(place) + "/_c_00000000-0000-4000-8000-0000000000ff-__READ__" + number, "x", 77).path;
  ensemble.remove(theirs);
  engine.run();
  ASSERT_TRUE(reading->grant);
  EXPECT_FALSE(writing->grant);
  (void)release(*backend, *reading);
  EXPECT_FALSE(writing->grant) << "they still read";
  ensemble.remove(reader);
  engine.run();
  EXPECT_TRUE(writing->grant);
}

TEST_F(ReadWriteTest, AWriterBehindOneWhoGoesOnToReadWaits) {
  const std::string theirs = put_writer();
  const auto writing = write();
  const std::string number = theirs.substr(theirs.size() - 10);
  (void)ensemble.put(std::string(place) + "/_c_00000000-0000-4000-8000-0000000000ff-__READ__" + number, "x", 77);
  ensemble.remove(theirs);
  engine.run();
  EXPECT_FALSE(writing->grant);
}

TEST_F(ReadWriteTest, AWaveOfReadersCostsEachTheSame) {
  const auto cost = [&](int readers) {
    const auto writer = write();
    std::vector<std::unique_ptr<Attempt>> waiting;
    for (int i = 0; i < readers; ++i) waiting.push_back(read());
    const std::size_t before = ensemble.requests.size();
    (void)release(*backend, *writer);
    const std::size_t spent = ensemble.requests.size() - before;
    for (const auto& each : waiting) {
      EXPECT_TRUE(each->grant);
      (void)release(*backend, *each);
    }
    return spent / static_cast<std::size_t>(readers);
  };
  EXPECT_LE(cost(60), cost(10));
}

TEST_F(ReadWriteTest, AWriterWhoGivesUpLetsReadersIn) {
  const auto reading = read();
  auto writer = write();
  const auto later = read();
  EXPECT_FALSE(later->grant);
  writer->contention.reset();
  engine.run();
  EXPECT_TRUE(later->grant);
}

// --- Kinds -----------------------------------------------------------------------------------------------------------

TEST_F(ReadWriteTest, OfOneNameTheKindsDoNotTouchEachOther) {
  const auto writer = write();
  const auto plain = contend(*backend);
  const auto permit = contend(*backend, {.kind = LockKind::semaphore, .permits = 1});
  const auto leader = contend(*backend, {.kind = LockKind::election});
  EXPECT_TRUE(writer->grant && plain->grant && permit->grant && leader->grant);
  EXPECT_EQ(release(*backend, *plain)->status, ReleaseStatus::released);
  EXPECT_FALSE(read()->grant);
}

TEST_F(ReadWriteTest, NodesOfAnotherKindAreNeverJoined) {
  const std::vector<std::pair<LockKind, std::string>> others = {{LockKind::lock, "-__READ__"},
                                                                {LockKind::read_write, "-lock-"},
                                                                {LockKind::read_write, "-permit-of-2-"},
                                                                {LockKind::semaphore, "-__WRIT__"},
                                                                {LockKind::election, "-permit-of-2-"}};
  for (const auto& [kind, marker] : others) {
    const std::string path = lock_path("/dlock", "lock", kind);
    const std::string theirs = put_node(path, marker);
    for (const bool wait : {true, false}) {
      const auto attempt = contend(*backend, {.kind = kind, .wait = wait});
      EXPECT_TRUE(failed(*attempt, errc::protocol, path)) << marker;
    }
    EXPECT_TRUE(own_nodes(path, kind).empty());
    std::optional<Result<bool>> broken;
    backend->break_lock(kind, "lock", [&](Result<bool> result) { broken = std::move(result); });
    engine.run();
    ASSERT_TRUE(broken && !broken->ok());
    EXPECT_TRUE(ensemble.exists(theirs));
  }
}

TEST_F(ReadWriteTest, ALossSaysWhatWasLost) {
  const auto reading = read();
  engine.advance(1s);
  ensemble.remove(nodes().at(0));
  engine.run();
  ASSERT_EQ(host.losses.size(), 1U);
  EXPECT_EQ(host.losses[0].owner, reading->request.owner);
  EXPECT_NE(host.losses[0].why.detail.find("read-write lock \"lock\""), std::string::npos) << host.losses[0].why.detail;
}

}  // namespace

}  // namespace dlock::zookeeper
