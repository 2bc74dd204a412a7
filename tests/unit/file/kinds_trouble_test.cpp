// Full, forbidden and misplaced: what is different where a kind of locks has a directory of its own, and more to write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <utility>

#include "member.hpp"
#include "support.hpp"

namespace dlock::file::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FileKindsTroubleTest : public testing::TestWithParam<LockKind> {
 protected:
  [[nodiscard]] std::string directory() const { return scratch_.locks() + subdirectory(GetParam()); }
  [[nodiscard]] std::string file() const { return directory() + "/a.lock"; }
  // A lock that others may hold, too, where there are such.
  [[nodiscard]] static Mode mode() { return GetParam() == LockKind::read_write ? Mode::shared : Mode::exclusive; }

  ScratchDirectory scratch_;
};

INSTANTIATE_TEST_SUITE_P(All, FileKindsTroubleTest,
                         testing::Values(LockKind::read_write, LockKind::semaphore, LockKind::election),
                         [](const auto& info) { return subdirectory(info.param).substr(2); });

TEST_P(FileKindsTroubleTest, WhatCannotBeWrittenWhollyIsTakenBack) {
  EXPECT_WELL(in_child([&] {
    Member old(scratch_.locks(), GetParam(), 1);
    require(old.enter(mode()), "no lock");
    const std::uint64_t token = old.grants[0].token.value();
    require(old.leave(), "not ours");
    const std::string before = read_file(file());
    // The kernel writes up to the limit and refuses the rest: the record has room, what is beside it has not.
    rlimit limit{};
    require(::getrlimit(RLIMIT_FSIZE, &limit) == 0, "getrlimit");
    const rlim_t unlimited = std::exchange(limit.rlim_cur, 4096 + 100);
    require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    Member one(scratch_.locks(), GetParam(), 2);
    one.value = std::string(200, 'v');
    const auto expect_refused = [&](const std::string& name, bool wait) {
      const TryOutcome outcome = one.ask(one.request(mode(), wait, name));
      require(outcome.status == TryOutcome::Status::failed, "granted");
      require(outcome.failure.code == errc::access_denied, outcome.failure.detail);
      require(outcome.failure.detail.find("File too large") != std::string::npos, outcome.failure.detail);
    };
    for (const bool wait : {false, true}) {
      expect_refused("a", wait);
      expect_refused("new", wait);
    }
    one.executor.run();
    require(read_file(directory() + "/new.lock").empty(), "something stayed in the new file");
    require(read_file(file()).substr(0, 512) == before.substr(0, 512), "another record");
    require(!one.inspect().held, "half a grant stayed behind");
    limit.rlim_cur = unlimited;
    require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    Member next(scratch_.locks(), GetParam(), 3);
    next.permits = 2;
    require(next.enter() && next.grants[0].token.value() > token, "did not recover");
  }));
}

TEST_P(FileKindsTroubleTest, WhereItsDirectoryCannotBeMadeAccessIsDeniedAndNothingIsHeld) {
  fs::create_directory(scratch_.locks());
  ASSERT_EQ(::chmod(scratch_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(scratch_.locks().c_str(), 0555), 0);
  EXPECT_WELL(in_child([&] {
    become_nobody();
    Member one(scratch_.locks(), GetParam(), 1);
    for (const bool wait : {false, true}) {
      const TryOutcome outcome = one.ask(one.request(mode(), wait));
      require(outcome.status == TryOutcome::Status::failed, "granted");
      require(outcome.failure.code == errc::access_denied, outcome.failure.detail);
      require(outcome.failure.detail.find(directory()) != std::string::npos, outcome.failure.detail);
    }
    require(!one.inspect().held, "held");
    require(one.forget().empty(), "forgotten");
    require(one.list().empty(), "listed");
    require(one.backend.watch(GetParam(), "a", [] {}) == nullptr, "a watch of nothing");
  }));
  ASSERT_EQ(::chmod(scratch_.locks().c_str(), 0755), 0);
}

TEST_P(FileKindsTroubleTest, ItsDirectoryIsMadeAnewWhenItWasRemovedAndItsLeasesAreLost) {
  Member one(scratch_.locks(), GetParam(), 1);
  EXPECT_TRUE(one.enter(mode()));
  fs::remove_all(directory());
  one.executor.run();
  ASSERT_EQ(one.host.losses.size(), 1U);
  EXPECT_THAT(one.host.losses[0].why.detail, HasSubstr(std::string(to_string(GetParam())) + " \"a\""));
  EXPECT_FALSE(one.leave());
  EXPECT_TRUE(one.enter(mode()));
  EXPECT_TRUE(fs::exists(file()));
}

TEST_P(FileKindsTroubleTest, TheDoctorWarnsOfItsFilesToo) {
  Member one(scratch_.locks(), GetParam(), 1);
  EXPECT_TRUE(one.enter(mode()));
  EXPECT_EQ(one.finding("lock files").severity, Finding::Severity::ok);
  write_file(directory() + "/b.lock", "not a lock\n");
  EXPECT_EQ(one.finding("lock files").severity, Finding::Severity::warning);
  EXPECT_THAT(one.finding("lock files").message, HasSubstr(directory() + "/b.lock"));
}

}  // namespace
}  // namespace dlock::file::test
