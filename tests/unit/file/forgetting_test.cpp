// Lock files of names that are no longer used are removed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/file/file_name.hpp"
#include "support.hpp"

namespace dlock::file::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FileForgettingTest : public testing::Test {
 protected:
  void use(const std::string& name) const { EXPECT_TRUE(client_.make_lock(name).acquire().release()); }
  [[nodiscard]] bool exists(const std::string& name) const {
    return fs::exists(scratch_.locks() + "/" + encode_file_name(name));
  }
  static Failure refusal(const Client& client, const std::string& name) {
    return failure_of([&] { (void)client.forget(name); });
  }

  ScratchDirectory scratch_;
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  Client client_ = connect(scratch_.url(), {.clock = clock_});
  Client other_ = connect(scratch_.url(), {.clock = clock_});
};

TEST_F(FileForgettingTest, TheFileIsRemovedAndTokensStillGrow) {
  const std::string longest(512, '/');
  for (const std::string& name : {std::string("a/b"), longest}) {
    auto lease = client_.make_lock(name).acquire();
    EXPECT_TRUE(lease.release());
    clock_->advance(1min);
    EXPECT_TRUE(other_.forget(name));
    EXPECT_FALSE(exists(name));
    EXPECT_FALSE(client_.forget(name));
    EXPECT_GT(client_.make_lock(name).acquire().token(), lease.token());
  }
}

TEST_F(FileForgettingTest, ATokenIsKeptUntilTheClockIsPastIt) {
  use("a");
  clock_->advance(1min - 1us);
  EXPECT_EQ(refusal(client_, "a").code, errc::timed_out);
  clock_->step_wall(-1h);
  EXPECT_THAT(refusal(client_, "a").detail, HasSubstr("ahead of the service's clock"));
  EXPECT_THAT(client_.forget_idle(1min), IsEmpty());
  EXPECT_TRUE(exists("a"));
}

TEST_F(FileForgettingTest, NamesThatWereNotTakenForSoLongAreForgottenAndWhatIsNoLockFileStays) {
  for (const char* name : {"b", "a", ".."}) use(name);
  write_file(scratch_.locks() + "/notes.lock", "not a lock\n");
  write_file(scratch_.locks() + "/empty.lock", "");
  ASSERT_EQ(::symlink("a.lock", (scratch_.locks() + "/link.lock").c_str()), 0);
  clock_->advance(1h);
  use("young");
  EXPECT_EQ(refusal(client_, "notes").code, errc::protocol);
  EXPECT_FALSE(client_.forget("empty"));
  EXPECT_THAT(client_.forget_idle(2h), IsEmpty());
  EXPECT_THAT(client_.forget_idle(forever), IsEmpty());
  EXPECT_THAT(client_.forget_idle(1h), ElementsAre("..", "a", "b"));
  EXPECT_THAT(client_.forget_idle(1h), IsEmpty());
  for (const char* name : {"young", "notes", "empty"}) EXPECT_TRUE(exists(name)) << name;
  EXPECT_TRUE(fs::is_symlink(scratch_.locks() + "/link.lock"));
}

// Their files disappear between being opened, locked and looked at again.
TEST_F(FileForgettingTest, AcquiresAreSafeWhileNamesAreForgotten) {
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

}  // namespace
}  // namespace dlock::file::test
