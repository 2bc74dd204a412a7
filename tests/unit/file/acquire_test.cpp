// Acquire and release through the public interface, within one process.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "backends/file/file_name.hpp"
#include "backends/file/lock_record.hpp"
#include "support.hpp"
#include "util/unique_fd.hpp"

namespace dlock::file::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class FileBackendTest : public testing::Test {
 protected:
  [[nodiscard]] Client open(ClientOptions options = {}) const { return connect(scratch_.url(), std::move(options)); }
  [[nodiscard]] std::string path_of(const std::string& name) const {
    return scratch_.locks() + "/" + encode_file_name(name);
  }

  ScratchDirectory scratch_;
};

TEST_F(FileBackendTest, SaysWhatItIs) {
  const auto capabilities = open().capabilities();
  EXPECT_EQ(capabilities.backend, "file");
  EXPECT_EQ(capabilities.scope, Scope::machine);
  EXPECT_EQ(capabilities.lease_kind, LeaseKind::process);
  EXPECT_EQ(capabilities.fencing, FencingDurability::wall_clock);
  EXPECT_FALSE(capabilities.fair);
  EXPECT_TRUE(capabilities.can_inspect);
  EXPECT_TRUE(capabilities.can_list);
  EXPECT_FALSE(capabilities.can_break);
}

TEST_F(FileBackendTest, TwoPathsToOneDirectoryAreTheSameLocks) {
  const auto client = open();
  fs::create_directory_symlink(scratch_.path(), scratch_.path() + "/link");
  const auto other = connect("file://" + scratch_.path() + "/link/locks/");
  const auto lease = client.make_lock("a").acquire();
  EXPECT_FALSE(other.make_lock("a").try_acquire().has_value());
}

TEST_F(FileBackendTest, TokensGrowWhenTheWallClockWasSteppedBack) {
  const auto clock = std::make_shared<ManualClock>();
  const auto token = [&] {
    const auto client = open({.clock = clock});
    return client.make_lock("a").acquire().token().value();
  };
  const auto first = token();
  EXPECT_EQ(first, static_cast<std::uint64_t>(microseconds(clock->wall_now())));
  clock->step_wall(-24h * 365);
  EXPECT_EQ(token(), first + 1);
  clock->step_wall(24h * 366);
  EXPECT_EQ(token(), static_cast<std::uint64_t>(microseconds(clock->wall_now())));
}

TEST_F(FileBackendTest, TokensGrowWhenTheFileWasRemoved) {
  const auto token = [&] {
    const auto client = open();
    return client.make_lock("a").acquire().token();
  };
  const auto first = token();
  fs::remove(path_of("a"));
  EXPECT_GT(token(), first);
}

TEST_F(FileBackendTest, WritesARecordThatPeopleCanRead) {
  const auto client = open({.label = "nightly"});
  const auto lease = client.make_lock("orders/42").acquire();
  const std::string text = read_file(path_of("orders/42"));
  const auto content = parse_record(text);
  const auto* read = std::get_if<ReadRecord>(&content);
  ASSERT_NE(read, nullptr) << text;
  EXPECT_EQ(read->record.token, lease.token().value());
  EXPECT_EQ(read->record.owner, lease.owner());
  EXPECT_EQ(read->record.holder, client.holder());
  EXPECT_EQ(read->record.pid, ::getpid());
  EXPECT_EQ(read->name, "orders/42");
}

TEST_F(FileBackendTest, TakesAFileThatAPowerFailureLeftEmptyOrZeroed) {
  for (const std::size_t size : {0U, 512U, 4096U}) {
    const auto client = open();
    write_file(path_of("a"), std::string(std::min(size, max_record), '\0'));
    EXPECT_TRUE(client.make_lock("a").try_acquire().has_value()) << size;
  }
}

TEST_F(FileBackendTest, CompletesARecordWhoseNameWasNotWritten) {
  const auto client = open();
  const auto first = client.make_lock("a").acquire().token();
  ASSERT_EQ(::truncate(path_of("a").c_str(), record_block), 0);
  EXPECT_GT(client.make_lock("a").acquire().token(), first);
  EXPECT_NE(read_file(path_of("a")).find("\nname a\n"), std::string::npos);
}

TEST_F(FileBackendTest, NeverTouchesAFileThatIsNotALock) {
  const auto client = open();
  for (const std::string content : {"somebody's notes\n", "dlock lock file, version 2\n", "x"}) {
    write_file(path_of("a"), content);
    for (const bool wait : {false, true}) {
      const Failure failure =
          failure_of([&] { (void)client.make_lock("a").acquire({.wait = wait ? Duration(10s) : 0s}); });
      EXPECT_EQ(failure.code, errc::protocol);
      EXPECT_NE(failure.detail.find(path_of("a")), std::string::npos) << failure.detail;
      EXPECT_NE(failure.detail.find("remove it"), std::string::npos) << failure.detail;
    }
    EXPECT_EQ(read_file(path_of("a")), content);
  }
}

TEST_F(FileBackendTest, ReadsNoMoreOfAHugeFileThanARecord) {
  const auto client = open();
  write_file(path_of("a"), "x");
  std::filesystem::resize_file(path_of("a"),
                               std::uintmax_t{1} << 40U);  // more than any memory, and nearly all of it holes
  EXPECT_EQ(failure_of([&] { (void)client.make_lock("a").try_acquire(); }).code, errc::protocol);
  EXPECT_EQ(failure_of([&] { (void)client.inspect("a"); }).code, errc::protocol);
  EXPECT_EQ(std::filesystem::file_size(path_of("a")), std::uintmax_t{1} << 40U);
}

TEST_F(FileBackendTest, ReadsAFileAlthoughAnotherCallWasInterrupted) {
  const util::UniqueFd fd(::open(scratch_.path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) GTEST_SKIP() << "no files without a name on this file system";
  errno = EINTR;
  EXPECT_TRUE(read_content(fd.get(), "a").ok());
}

TEST_F(FileBackendTest, NeverMergesTwoNamesThatShareAFile) {
  const auto client = open();
  (void)client.make_lock("other").acquire().release();
  fs::copy_file(path_of("other"), path_of("a"));
  const std::string before = read_file(path_of("a"));
  const auto expect_refused = [&] {
    for (const bool wait : {false, true}) {
      const Failure failure =
          failure_of([&] { (void)client.make_lock("a").acquire({.wait = wait ? Duration(10s) : 0s}); });
      EXPECT_EQ(failure.code, errc::protocol);
      EXPECT_NE(failure.detail.find("belongs to lock \"other\", not to \"a\""), std::string::npos) << failure.detail;
    }
  };
  expect_refused();
  EXPECT_EQ(read_file(path_of("a")), before);
  // Also while a strange program holds it.
  const int fd = ::open(path_of("a").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_TRUE(take_lock(fd, "a").ok());
  expect_refused();
  ::close(fd);
}

TEST_F(FileBackendTest, RefusesToGoPastTheLargestToken) {
  const auto client = open();
  LockRecord record{.token = std::numeric_limits<std::int64_t>::max() - 1};
  write_file(path_of("a"), format_block(record, "a") + format_name_line("a"));
  EXPECT_EQ(client.make_lock("a").acquire().token().value(), record.token + 1);
  const Failure failure = failure_of([&] { (void)client.make_lock("a").acquire(); });
  EXPECT_EQ(failure.code, errc::protocol);
  EXPECT_NE(failure.detail.find("token"), std::string::npos) << failure.detail;
}

TEST_F(FileBackendTest, RefusesASymbolicLinkInPlaceOfTheFile) {
  const auto client = open();
  write_file(scratch_.path() + "/victim", "");
  fs::create_symlink(scratch_.path() + "/victim", path_of("a"));
  const Failure failure = failure_of([&] { (void)client.make_lock("a").acquire(); });
  EXPECT_EQ(failure.code, errc::protocol);
  EXPECT_EQ(read_file(scratch_.path() + "/victim"), "");
}

TEST_F(FileBackendTest, HoldsManyLocksAtOnceWithNamesOfEveryKind) {
  const auto client = open();
  std::vector<std::string> names = {".", "..", "a/b", "a%2Fb", "~", " ", "\xf0\x9f\x94\x92", "-rf", "a.lock"};
  for (int i = 0; i < 500; ++i) names.push_back("lock " + std::to_string(i));
  for (const char last : {'a', 'b'}) names.push_back(std::string(511, '/') + last);
  std::vector<Lease> leases;
  for (const auto& name : names) leases.push_back(client.make_lock(name).acquire({.wait = 0s}));
  for (auto& lease : leases) EXPECT_TRUE(lease.release()) << lease.name();
  EXPECT_EQ(client.list().size(), names.size());
}

TEST_F(FileBackendTest, APingLeavesNothingAndSaysWhatATryWouldFailOf) {
  const auto client = open();
  const auto files = [&] { return std::distance(fs::directory_iterator(scratch_.locks()), fs::directory_iterator()); };
  client.ping(10s);
  EXPECT_EQ(files(), 0);
  write_file(path_of("dlock-ping"), "not a lock\n");
  EXPECT_EQ(failure_of([&] { client.ping(10s); }).code, errc::protocol);
  client.ping(10s, "another");
  EXPECT_EQ(files(), 1);
}

TEST_F(FileBackendTest, ReleaseFreesTheDescriptor) {
  const auto client = open();
  for (const char* name : {"a", "b"}) (void)client.make_lock(name).acquire().release();  // their shards stay
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 100; ++i) (void)client.make_lock("a").acquire().release();
  for (int i = 0; i < 100; ++i) (void)client.make_lock("b").try_acquire();
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(FileBackendTest, ATryThatIsRefusedKeepsNoDescriptor) {
  const auto client = open();
  write_file(path_of("a"), "not a lock\n");
  EXPECT_EQ(failure_of([&] { (void)client.make_lock("a").try_acquire(); }).code, errc::protocol);
  EXPECT_EQ(open_descriptors("/a.lock"), 0U);
}

TEST_F(FileBackendTest, TheOwnerAloneIsGrantedTheSameAgainAndReleases) {
  OpenBackend open(scratch_.url());
  const LockRequest request{.name = "a", .owner = OwnerId(1, 2), .holder = "h:1:l", .lease = 1s, .wait = false};
  std::vector<TryOutcome> outcomes;
  for (int i = 0; i < 2; ++i) {
    open.backend->try_acquire(request, [&](TryOutcome outcome) { outcomes.push_back(std::move(outcome)); });
  }
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(outcomes[1].status, TryOutcome::Status::granted);
  EXPECT_EQ(outcomes[0].grant.token, outcomes[1].grant.token);
  const auto release_by = [&](OwnerId owner) {
    ReleaseOutcome::Status status{};
    Grant grant = outcomes[0].grant;
    grant.owner = owner;
    open.backend->release(grant, [&](const ReleaseOutcome& outcome) { status = outcome.status; });
    return status;
  };
  EXPECT_EQ(release_by(OwnerId(1, 3)), ReleaseOutcome::Status::not_owner);
  EXPECT_FALSE(open.client.make_lock("a").try_acquire().has_value());
  EXPECT_EQ(release_by(OwnerId(1, 2)), ReleaseOutcome::Status::released);
  EXPECT_EQ(release_by(OwnerId(1, 2)), ReleaseOutcome::Status::not_owner);
}

}  // namespace
}  // namespace dlock::file::test
