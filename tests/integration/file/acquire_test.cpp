// Acquire, release and questions in one process: what is in the directory and its files, before and after.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <atomic>
#include <limits>
#include <thread>

#include "backends/file/file_name.hpp"
#include "backends/file/lock_record.hpp"
#include "tests/unit/file/member.hpp"
#include "tests/unit/file/support.hpp"
#include "util/unique_fd.hpp"

namespace dlock::file::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class FileBackendTest : public testing::Test {
 protected:
  [[nodiscard]] std::string path_of(const std::string& name) const {
    return scratch_.locks() + "/" + encode_file_name(name);
  }
  ScratchDirectory scratch_;
  Member member_{scratch_.locks(), LockKind::lock, 1};
};

// Shows: one-holder
TEST_F(FileBackendTest, TwoPathsToOneDirectory_AreTheSameLocks) {
  fs::create_directory_symlink(scratch_.path(), scratch_.path() + "/link");
  Member other(scratch_.path() + "/link/locks/", LockKind::lock, 2);
  EXPECT_TRUE(member_.enter());
  EXPECT_FALSE(other.enter());
}

// Shows: growing-tokens
TEST_F(FileBackendTest, FileLeftEmptyOrZeroed_IsUsed) {
  for (const std::size_t size : {std::size_t{0}, record_block, max_record}) {
    write_file(path_of("a"), std::string(size, '\0'));
    EXPECT_TRUE(member_.enter() && member_.leave()) << size;
  }
}

TEST_F(FileBackendTest, RecordWithoutName_IsCompleted) {
  ASSERT_TRUE(member_.enter());
  const FencingToken first = member_.grants[0].token;
  ASSERT_TRUE(member_.leave());
  ASSERT_EQ(::truncate(path_of("a").c_str(), record_block), 0);
  ASSERT_TRUE(member_.enter());
  EXPECT_GT(member_.grants[0].token, first);
  EXPECT_THAT(read_file(path_of("a")), HasSubstr("\nname a\n"));
}

TEST_F(FileBackendTest, FileThatIsNoLock_IsRefusedAndNotTouched) {
  const LockRecord last{.token = std::numeric_limits<std::int64_t>::max()};
  const std::pair<std::string, const char*> refused[] = {
      {"somebody's notes\n", "remove it once no program uses the lock"},
      {"dlock lock file, version 2\n", "remove it once no program uses the lock"},
      {"x", "remove it once no program uses the lock"},
      {format_block({}, "other") + format_name_line("other"), "belongs to lock \"other\", not to \"a\""},
      {format_block(last, "a") + format_name_line("a"), "its fencing token is the largest possible"}};
  for (const auto& [content, text] : refused) {
    write_file(path_of("a"), content);
    for (const bool wait : {false, true}) {
      const TryOutcome outcome = member_.ask(member_.request(Mode::exclusive, wait));
      ASSERT_EQ(outcome.status, TryOutcome::Status::failed);
      EXPECT_EQ(outcome.failure.code, errc::protocol);
      EXPECT_THAT(outcome.failure.detail, HasSubstr(path_of("a")));
      EXPECT_THAT(outcome.failure.detail, HasSubstr(text));
      member_.executor.run();
      EXPECT_EQ(open_descriptors("/a.lock"), 0U);
    }
    EXPECT_EQ(read_file(path_of("a")), content);
  }
}

TEST_F(FileBackendTest, HeldFileOfAnotherName_IsRefused) {
  write_file(path_of("a"), format_block({}, "other") + format_name_line("other"));
  const util::UniqueFd stranger(::open(path_of("a").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(take_lock(stranger.get(), "a").ok());
  const TryOutcome outcome = member_.ask(member_.request());
  EXPECT_THAT(outcome.failure.detail, HasSubstr("belongs to lock \"other\", not to \"a\""));
}

TEST_F(FileBackendTest, HugeFile_IsReadNoFurtherThanARecord) {
  constexpr std::uintmax_t huge = std::uintmax_t{1} << 40U;  // more than any memory, and nearly all of it holes
  write_file(path_of("a"), "x");
  fs::resize_file(path_of("a"), huge);
  EXPECT_EQ(member_.ask(member_.request()).failure.code, errc::protocol);
  EXPECT_EQ(thrown_by([&] { (void)connect(scratch_.url()).inspect("a"); }).code, errc::protocol);
  EXPECT_EQ(fs::file_size(path_of("a")), huge);
}

// Shows: no-residue
TEST_F(FileBackendTest, Release_ClosesTheDescriptors) {
  for (const LockKind kind : all_kinds) {
    Member member(scratch_.locks(), kind, 2);
    member.permits = 2;
    const Mode mode = kind == LockKind::read_write ? Mode::shared : Mode::exclusive;
    const bool several = kind == LockKind::read_write || kind == LockKind::semaphore;
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(member.enter(mode) && (!several || (member.enter(mode) && member.leave())) && member.leave());
    }
    EXPECT_EQ(open_descriptors(".lock"), 0U) << to_string(kind);
  }
}

TEST_F(FileBackendTest, RepeatedAcquire_IsGrantedTheSameToItsOwnerOnly) {
  for (const LockKind kind : all_kinds) {
    Member member(scratch_.locks(), kind, 2);
    member.permits = 2;
    const LockRequest asked = member.request(kind == LockKind::read_write ? Mode::shared : Mode::exclusive);
    const TryOutcome first = member.ask(asked);
    const TryOutcome again = member.ask(asked);
    ASSERT_EQ(again.status, TryOutcome::Status::granted);
    EXPECT_EQ(again.grant.token, first.grant.token);
    EXPECT_EQ(again.grant.kind, kind);
    EXPECT_EQ(again.grant.mode, asked.mode);
    Grant strange = first.grant;
    strange.owner = OwnerId(9, 9);
    EXPECT_FALSE(member.release(strange));
    EXPECT_TRUE(member.inspect().held);
    EXPECT_TRUE(member.release(first.grant));
    EXPECT_FALSE(member.release(first.grant));
  }
}

// --- Questions ---

TEST_F(FileBackendTest, List_ShowsLocksSortedAndNoOtherFiles) {
  const std::string longest(512, '/');
  EXPECT_TRUE(member_.enter(Mode::exclusive, "b/2"));
  for (const std::string& name : {std::string("mine"), longest}) {
    Member other(scratch_.locks(), LockKind::lock, 2);
    EXPECT_TRUE(other.enter(Mode::exclusive, name));
  }
  const std::string at = scratch_.locks() + "/";
  const std::string elsewhere = format_block({.token = 5}, "elsewhere") + format_name_line("elsewhere");
  const std::pair<std::string, std::string> strange[] = {{"notes.txt", "x"},
                                                         {"empty.lock", ""},
                                                         {"strange.lock", "not a lock\n"},
                                                         {"a b.lock", ""},
                                                         {".hidden.lock", ""},
                                                         {"bad%00name.lock", ""},
                                                         {"moved.lock", elsewhere},
                                                         {encode_file_name(std::string(300, 'x')), elsewhere}};
  for (const auto& [file, content] : strange) write_file(at + file, content);
  fs::create_directory(at + "directory.lock");
  fs::create_symlink(at + "mine.lock", at + "link.lock");
  ASSERT_EQ(::mkfifo((at + "fifo.lock").c_str(), 0600), 0);
  std::vector<std::pair<std::string, bool>> listed;
  for (const auto& each : member_.list()) listed.emplace_back(each.name, each.held);
  EXPECT_THAT(listed, ElementsAre(std::pair(longest, false), std::pair("b/2", true), std::pair("mine", false)));
  EXPECT_EQ(member_.list()[1].token, member_.grants[0].token);
  const util::UniqueFd stranger(::open((at + "empty.lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(take_lock(stranger.get(), "empty.lock").ok());
  ASSERT_EQ(member_.list().size(), 4U);
  EXPECT_TRUE(member_.list()[2].held) << "without a record";
  EXPECT_EQ(member_.list()[2].token.value(), 0U);
}

TEST_F(FileBackendTest, Break_IsUnsupportedAndNamesAllHolders) {
  const std::string pid = std::to_string(::getpid());
  const auto refusal = [&](LockKind kind, const std::string& name) {
    Failure failure;
    member_.backend.break_lock(kind, name, [&](const Result<bool>& answer) { failure = answer.failure(); });
    EXPECT_EQ(failure.code, errc::unsupported);
    return failure.detail;
  };
  EXPECT_TRUE(member_.enter());
  Member reading(scratch_.locks(), LockKind::read_write, 2);
  EXPECT_TRUE(reading.read() && reading.read());
  EXPECT_THAT(refusal(LockKind::lock, "a"),
              HasSubstr("lock \"a\" is held by process " + pid + " (host:1:l), which has to end or release it"));
  EXPECT_THAT(refusal(LockKind::read_write, "a"),
              HasSubstr("read-write lock \"a\" is held by process " + pid + " (host:2:l), process " + pid +
                        " (host:2:l), which have to end or release it"));
  EXPECT_THAT(refusal(LockKind::lock, "b"), Not(HasSubstr("process")));
}

// --- Names that are no longer used ---

class FileForgettingTest : public testing::Test {
 protected:
  void use(const std::string& name) const { EXPECT_TRUE(client_.make_lock(name).acquire().release()); }
  [[nodiscard]] bool exists(const std::string& name) const {
    return fs::exists(scratch_.locks() + "/" + encode_file_name(name));
  }
  [[nodiscard]] Failure refusal(const std::string& name) const {
    return thrown_by([&] { (void)client_.forget(name); });
  }

  ScratchDirectory scratch_;
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  Client client_ = connect(scratch_.url(), {.clock = clock_});
};

TEST_F(FileForgettingTest, TokenAheadOfTheClock_IsKept) {
  use("a");
  clock_->advance(1min - 1us);
  EXPECT_EQ(refusal("a").code, errc::timed_out);
  clock_->step_wall(-1h);
  EXPECT_THAT(refusal("a").detail, HasSubstr("ahead of the service's clock"));
  EXPECT_THAT(client_.forget_idle(1min), IsEmpty());
  EXPECT_TRUE(exists("a"));
}

TEST_F(FileForgettingTest, IdleNames_AreForgottenAndOtherFilesStay) {
  for (const char* name : {"b", "a", ".."}) use(name);
  write_file(scratch_.locks() + "/notes.lock", "not a lock\n");
  write_file(scratch_.locks() + "/empty.lock", "");
  ASSERT_EQ(::symlink("a.lock", (scratch_.locks() + "/link.lock").c_str()), 0);
  clock_->advance(1h);
  use("young");
  EXPECT_EQ(refusal("notes").code, errc::protocol);
  EXPECT_FALSE(client_.forget("empty"));
  EXPECT_THAT(client_.forget_idle(2h), IsEmpty());
  EXPECT_THAT(client_.forget_idle(forever), IsEmpty());
  EXPECT_THAT(client_.forget_idle(1h), ElementsAre("..", "a", "b"));
  EXPECT_THAT(client_.forget_idle(1h), IsEmpty());
  for (const char* name : {"young", "notes", "empty"}) EXPECT_TRUE(exists(name)) << name;
  EXPECT_TRUE(fs::is_symlink(scratch_.locks() + "/link.lock"));
}

// Their files disappear between being opened, locked and looked at again.
// Shows: forgetting
TEST_F(FileForgettingTest, NamesBeingForgotten_AcquiresExclude) {
  constexpr int rounds = 2000;
  std::array<std::atomic<int>, 4> inside{};
  std::array<std::uint64_t, 4> last_token{};
  std::atomic<bool> stop = false;
  std::atomic<int> removed = 0;
  std::jthread forgetting([&] {
    const Client client = connect(scratch_.url(), {.clock = clock_});
    while (!stop) {
      clock_->advance(1min);
      removed += static_cast<int>(client.forget_idle(1min).size());
    }
  });
  {
    std::vector<std::jthread> workers;
    for (const std::size_t first : {std::size_t{0}, std::size_t{1}}) {
      workers.emplace_back([&, first] {
        const Client client = connect(scratch_.url(), {.clock = clock_});
        for (std::size_t i = first; i < rounds || removed == 0; ++i) {
          const std::size_t at = i % inside.size();
          auto lease = client.make_lock(std::to_string(at)).acquire();
          EXPECT_EQ(inside[at].fetch_add(1), 0) << "held twice";
          EXPECT_GT(lease.token().value(), last_token[at]);
          last_token[at] = lease.token().value();
          inside[at].fetch_sub(1);
          EXPECT_TRUE(lease.release());
        }
      });
    }
  }
  stop = true;
  forgetting.join();
}

// --- URLs ---

TEST(FileUrl, Valid_NamesDirectoryAndMode) {
  const std::pair<const char*, Location> expected[] = {{"file:///run/lock/app", {"/run/lock/app", 0700}},
                                                       {"file://localhost/run/lock", {"/run/lock", 0700}},
                                                       {"file:///a%20b/%25", {"/a b/%", 0700}},
                                                       {"file:///d?mode=0770", {"/d", 0770}},
                                                       {"file:///d?mode=2770", {"/d", 02770}},
                                                       {"file:///d?mode=01777", {"/d", 01777}}};
  for (const auto& [url, location] : expected) {
    EXPECT_EQ(parse_location(Url::parse(url)).path, location.path) << url;
    EXPECT_EQ(parse_location(Url::parse(url)).mode, location.mode) << url;
  }
}

TEST(FileUrl, Invalid_IsRefusedWithThePartNamed) {
  const std::pair<const char*, const char*> wrong[] = {
      {"file://server/share", "server"},
      {"file://localhost:80/d", "localhost"},
      {"file://a,b/d", "host"},
      {"file://localhost,/d", "host"},
      {"file://me@localhost/d", "user"},
      {"file://me:secret@localhost/d", "user"},
      {"file://", "path"},
      {"file://localhost", "path"},
      {"file:///d?mode=", "mode"},
      {"file:///d?mode=rwx", "mode"},
      {"file:///d?mode=0800", "mode"},
      {"file:///d?mode=-700", "mode"},
      {"file:///d?mode=77777", "mode"},
      {"file:///d?mode=99999999999999999999", "mode"},
      {"file:///d?mode=0077", "mode"},
      {"file:///d?mode=0700%20", "mode"},
      {"file:///d?prefix=x", "prefix"},
      {"file:///d?mode=0700&Mode=0700", "Mode"},
  };
  for (const auto& [url, part] : wrong) {
    const Failure failure = thrown_by([&] { (void)parse_location(Url::parse(url)); });
    EXPECT_EQ(failure.code, errc::invalid_argument) << url;
    EXPECT_THAT(failure.detail, HasSubstr(part)) << url;
    EXPECT_THAT(failure.detail, Not(HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace dlock::file::test
