// How requests for a name's addresses share look-ups. No name server is asked.
#include "util/resolver.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/thread_engine.hpp"
#include "torture/rig/hang_guard.hpp"
#include "util/event.hpp"

namespace dlock::util {
namespace {

using namespace std::chrono_literals;

constexpr const char* silent = "silent.example";  // its name server does not answer until told to
constexpr const char* broken = "broken.example";  // fails at once, until it is mended

class ResolverTest : public testing::Test {
 protected:
  ~ResolverTest() override {
    let_answer_.set();
    in_task([this] { requests_.clear(); });
    engine_->stop();
  }

  struct Request {
    Event answered;
    Result<Addresses> answer = Failure{errc::unavailable, "not answered"};
    std::unique_ptr<Resolution> resolution;
  };

  Request& request(const std::string& host, std::uint16_t port = 1) {
    Request& made = requests_.emplace_back();
    in_task([&] {
      made.resolution = std::make_unique<Resolution>(
          *engine_, host, port,
          [&made](Result<Addresses> answer) {
            made.answer = std::move(answer);
            made.answered.set();
          },
          resolver_);
    });
    return made;
  }
  void abandon(Request& request) {
    in_task([&] { request.resolution.reset(); });
  }
  static bool is_answered(Request& request) { return request.answered.wait(rig::hang_guard); }
  int look_ups() const { return look_ups_; }

  std::atomic<bool> mended_ = false;
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  Event let_answer_;

 private:
  template <class F>
  void in_task(F f) {
    Event done;
    engine_->post([&] {
      f();
      done.set();
    });
    EXPECT_TRUE(done.wait(rig::hang_guard));
  }
  Result<Addresses> look_up(const std::string& host) {
    ++look_ups_;
    if (host == broken && !mended_) return Failure{errc::unavailable, "no such name"};
    EXPECT_TRUE(host != silent || let_answer_.wait(rig::hang_guard));
    Address address;
    address.storage.ss_family = AF_INET;
    address.length = sizeof(sockaddr_in);
    address.family = AF_INET;
    return Addresses{address};
  }

  std::atomic<int> look_ups_ = 0;
  std::list<Request> requests_;
  std::shared_ptr<engine::Engine> engine_ =
      engine::ThreadEngine::start(boottime_clock(), [] { return std::uint64_t{4}; });
  Resolver resolver_{[this](const std::string& host) { return look_up(host); }, clock_};
};

TEST_F(ResolverTest, RequestsForANameInFlight_ShareItsLookUp) {
  Request& first = request(silent, 80);
  abandon(request(silent, 81));
  Request& last = request(silent, 82);
  let_answer_.set();
  ASSERT_TRUE(is_answered(first) && is_answered(last));
  EXPECT_EQ(look_ups(), 1);
  const auto port_of = [](Request& of) {
    return ntohs(reinterpret_cast<const sockaddr_in*>(&of.answer.value().front().storage)->sin_port);
  };
  EXPECT_EQ(port_of(first), 80);
  EXPECT_EQ(port_of(last), 82);
}

TEST_F(ResolverTest, FailedLookUp_IsRepeatedAfterGrowingPauses) {
  int in_second[4] = {};
  for (int& count : in_second) {
    const int before = look_ups();
    for (int i = 0; i < 100; ++i) {
      Request& asked = request(broken);
      ASSERT_TRUE(is_answered(asked));
      ASSERT_EQ(asked.answer.failure().detail, "no such name");
      clock_->advance(10ms);
    }
    count = look_ups() - before;
  }
  EXPECT_GT(in_second[0], in_second[3]);
  EXPECT_LE(in_second[3], 1);
  clock_->advance(2s);
  const int before = look_ups();
  ASSERT_TRUE(is_answered(request(broken)));
  EXPECT_EQ(look_ups(), before + 1) << "a pause of more than two seconds";
  mended_ = true;
  clock_->advance(2s);
  ASSERT_TRUE(is_answered(request(broken)));
  mended_ = false;
  ASSERT_TRUE(is_answered(request(broken)));
  clock_->advance(100ms);
  ASSERT_TRUE(is_answered(request(broken)));
  EXPECT_EQ(look_ups(), before + 4) << "the pauses after a success are short again";
}

TEST_F(ResolverTest, RequestAfterAnAnswerOrAnothersFailure_LooksUpAtOnce) {
  ASSERT_TRUE(is_answered(request(broken)));
  let_answer_.set();
  for (const int known : {1, 2}) {
    EXPECT_TRUE(is_answered(request(silent)));
    EXPECT_EQ(look_ups(), known + 1);
  }
}

TEST_F(ResolverTest, NumericAddress_NeedsNoLookUp) {
  Request& six = request("::1", 80);
  ASSERT_TRUE(is_answered(six));
  EXPECT_EQ(six.answer.value().front().to_string(), "::1");
  EXPECT_EQ(look_ups(), 0);
}

}  // namespace
}  // namespace dlock::util
