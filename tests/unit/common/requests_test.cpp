// One connection: its requests, and the bytes that wait to be sent. Over real sockets of this machine: which of a
// host's addresses it is made to.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/common/request_table.hpp"
#include "backends/common/send_buffer.hpp"
#include "backends/common/tcp_dial.hpp"
#include "engine/thread_engine.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/manual_engine.hpp"
#include "torture/rig/hang_guard.hpp"
#include "torture/rig/socket.hpp"
#include "util/event.hpp"

namespace dlock::common {
namespace {

using namespace std::chrono_literals;

struct Payload {
  std::string name;
  std::function<void()> done;
};

class RequestTableTest : public testing::Test, public RequestTable<Payload>::User {
 protected:
  using Table = RequestTable<Payload>;

  Table::Entry entry(const std::string& name, std::chrono::nanoseconds deadline,
                     std::optional<std::chrono::nanoseconds> patience = std::nullopt) {
    return {.id = table->next_id(),
            .deadline = engine.now() + deadline,
            .sent = engine.now(),
            .patience = patience ? engine.now() + *patience : TimePoint::max(),
            .payload = {name, [this, name] {
                          given_up += name;
                          if (when_given_up) when_given_up();
                        }}};
  }

  test::ManualEngine engine;
  std::optional<Table> table{std::in_place, engine, *this};
  std::string given_up;
  std::size_t sent_given_up = 0;
  int caught_up = 0;
  int unresponsive = 0;
  std::function<void()> when_given_up;
  std::function<void()> when_catching_up = [] {};
  std::function<TimePoint()> when_unresponsive = [] { return TimePoint::max(); };

 private:
  void requests_catch_up() override {
    ++caught_up;
    when_catching_up();
  }
  TimePoint requests_unresponsive() override {
    ++unresponsive;
    return when_unresponsive();
  }
  void requests_overdue(std::vector<Table::Entry> sent, std::vector<Table::Entry> unsent) override {
    sent_given_up += sent.size();
    for (const auto& each : sent) each.payload.done();
    for (const auto& each : unsent) each.payload.done();
  }
};

TEST_F(RequestTableTest, Requests_AreSentInOrderAndAnsweredInOrderOrById) {
  for (const char* name : {"a", "b", "c"}) table->wait(entry(name, 1s));
  std::string names;
  for (const auto& each : table->take_waiting()) names += each.payload.name;
  EXPECT_EQ(names, "abc");
  EXPECT_TRUE(table->waiting().empty());
  const auto a = table->sent(entry("a", 1s)).id;
  const auto b = table->sent(entry("b", 1s)).id;
  table->sent(entry("c", 1s));
  EXPECT_EQ(table->take(b)->payload.name, "b");
  EXPECT_FALSE(table->take(b));
  EXPECT_EQ(table->take_oldest()->id, a);
  EXPECT_EQ(table->take_oldest()->payload.name, "c");
  EXPECT_FALSE(table->take_oldest());
}

TEST_F(RequestTableTest, Deadline_EndsEachRequestOnce) {
  table->sent(entry("a", 3s));
  table->sent(entry("b", 1s));
  table->wait(entry("c", 2s));
  engine.advance(1s);
  EXPECT_EQ(given_up, "b");
  EXPECT_EQ(caught_up, 1) << "the answer might have been there";
  EXPECT_EQ(table->under_way().size(), 2U) << "its answer may still come";
  engine.advance(1s);
  EXPECT_EQ(given_up, "bc");
  EXPECT_TRUE(table->waiting().empty());
  EXPECT_EQ(sent_given_up, 1U);
  engine.advance(1s);
  EXPECT_EQ(given_up, "bca");
  EXPECT_FALSE(table->under_way().front().payload.done);
  engine.advance(1h);
  EXPECT_EQ(given_up, "bca");
  EXPECT_EQ(unresponsive, 0);
}

TEST_F(RequestTableTest, DeadlineOfARequestThatWaits_ReadsNoAnswers) {
  table->wait(entry("a", 1s));
  table->wait(entry("b", 2s));
  engine.advance(1s);
  EXPECT_EQ(given_up, "a");
  EXPECT_EQ(table->waiting().size(), 1U);
  EXPECT_EQ(caught_up, 0);
}

TEST_F(RequestTableTest, AnswerThatArrivedDuringASuspension_Counts) {
  when_catching_up = [this] { (void)table->take_oldest(); };
  table->sent(entry("a", 1s));
  engine.sleep_through(1h);
  EXPECT_EQ(given_up, "");
}

TEST_F(RequestTableTest, PatienceOfTheOldestRequest_IsTheConnections) {
  const TimePoint kept_until = engine.now() + 10s;
  when_unresponsive = [&] { return engine.now() < kept_until ? kept_until : TimePoint::max(); };
  table->sent(entry("a", 1h, 2s));
  table->sent(entry("b", 1h, 3s));
  engine.advance(1999ms);
  EXPECT_EQ(unresponsive, 0);
  engine.advance(1ms);
  EXPECT_EQ(unresponsive, 1);
  engine.advance(7s);
  EXPECT_EQ(unresponsive, 1) << "it is kept all the same";
  engine.advance(1s);
  EXPECT_EQ(unresponsive, 2);
}

TEST_F(RequestTableTest, WithdrawnAndClearedRequests_AreNotGivenUp) {
  const auto waiting = entry("a", 1s);
  const auto id = waiting.id;
  table->wait(waiting);
  const auto sent = table->sent(entry("b", 1s)).id;
  EXPECT_TRUE(table->withdraw(id)) << "it was not sent";
  EXPECT_FALSE(table->withdraw(sent));
  EXPECT_FALSE(table->withdraw(12345));
  engine.advance(1h);
  EXPECT_EQ(table->under_way().size(), 1U);
  table->wait(entry("c", 1s));
  table->sent(entry("d", 1s, 1s));
  table->clear();
  engine.advance(1h);
  EXPECT_EQ(given_up, "");
  EXPECT_EQ(unresponsive, 0);
  table->wait(entry("e", 1s));
  engine.advance(1s);
  EXPECT_EQ(given_up, "e") << "it can be used again";
}

TEST_F(RequestTableTest, Callee_MayDestroyTheTable) {
  for (int what = 0; what < 3; ++what) {
    table.emplace(engine, *this);
    const auto end_if = [&, what](int number) {
      if (what == number) table.reset();
    };
    when_catching_up = [=] { end_if(0); };
    when_unresponsive = [=] {
      end_if(1);
      return TimePoint::max();
    };
    when_given_up = [=] { end_if(2); };
    table->sent(entry("a", 1s, 1s));
    engine.advance(1h);
    EXPECT_FALSE(table);
  }
}

// --- Bytes that wait to be sent --------------------------------------------------------------------------------------

constexpr std::size_t much = std::size_t{1} << 20;

TEST(SendBuffer, Bytes_LeaveInOrder) {
  SendBuffer buffer;
  std::string taken;
  std::string all;
  for (int i = 0; i < 100; ++i) {
    all += std::to_string(i);
    buffer.end() += std::to_string(i);
    const std::size_t count = buffer.size() / 2;
    taken += buffer.bytes().substr(0, count);
    buffer.remove(count);
  }
  taken += buffer.bytes();
  EXPECT_EQ(taken, all);
}

TEST(SendBuffer, Memory_FollowsTheBacklog) {
  SendBuffer buffer;
  buffer.end() += std::string(much / 16, 'x');
  for (int i = 0; i < 1000; ++i) {
    buffer.end() += std::string(much / 64, 'x');
    buffer.remove(much / 64);
    ASSERT_LE(buffer.capacity(), much) << "after " << i << " rounds";
  }
  EXPECT_EQ(buffer.size(), much / 16);
  for (const std::size_t left : {1U, 0U}) {
    buffer.end() += std::string(much, 'x');
    buffer.remove(buffer.size() - left);
    EXPECT_LE(buffer.capacity(), most_kept_bytes);
  }
  SendBuffer small;
  small.end() += std::string(1000, 'x');
  small.remove(1000);
  EXPECT_GE(small.capacity(), 1000U) << "kept for the next request";
}

// --- Addresses -------------------------------------------------------------------------------------------------------

util::Address loopback(std::uint16_t port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  util::Address address;
  std::memcpy(&address.storage, &in, sizeof in);
  address.length = sizeof in;
  address.family = AF_INET;
  return address;
}

struct Listening {
  [[nodiscard]] util::Address address() const { return loopback(listener.port()); }

  rig::Listener listener;
};

// Accepts nothing and refuses nothing: connections wait until one of those before them is taken.
class Silent {
 public:
  Silent() {
    for (auto& socket : sockets_)
      socket = util::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in in{};
    socklen_t length = sizeof in;
    const util::Address any = loopback(0);
    EXPECT_EQ(bind(sockets_[0].get(), any.get(), any.length), 0);
    EXPECT_EQ(listen(sockets_[0].get(), 0), 0);
    EXPECT_EQ(getsockname(sockets_[0].get(), reinterpret_cast<sockaddr*>(&in), &length), 0);
    address_ = loopback(ntohs(in.sin_port));
    for (int i = 1; i <= 4; ++i) (void)connect(sockets_[i].get(), address_.get(), address_.length);
  }
  [[nodiscard]] util::Address address() const { return address_; }

 private:
  util::UniqueFd sockets_[5];  // the first listens
  util::Address address_;
};

class TcpDialTest : public testing::Test {
 protected:
  ~TcpDialTest() override {
    util::Event gone;
    engine_->post([this, &gone] {
      dial_.reset();
      gone.set();
    });
    EXPECT_TRUE(gone.wait(rig::hang_guard));
    engine_->stop();
  }

  // The place in the list of the address that it connected to, or why it did not.
  std::optional<std::size_t> connect(const std::vector<util::Address>& addresses, std::chrono::nanoseconds within) {
    util::Event done;
    std::optional<std::size_t> reached;
    engine_->post([&] {
      dial_.emplace(static_cast<Executor&>(*engine_), addresses, engine_->now() + within, &hint_,
                    [&](Result<TcpDial::Connected> result) {
                      if (result.ok()) {
                        connected_ = std::move(result.value());
                        for (std::size_t i = 0; i < addresses.size(); ++i) {
                          if (std::memcmp(&addresses[i].storage, &connected_.peer->storage, addresses[i].length) == 0) {
                            reached = i;
                          }
                        }
                      } else {
                        why_ = result.failure().detail;
                      }
                      done.set();
                    });
    });
    EXPECT_TRUE(done.wait(rig::hang_guard));
    return reached;
  }

  std::string why_;
  PeerHint hint_;

 private:
  std::shared_ptr<engine::Engine> engine_ =
      engine::ThreadEngine::start(boottime_clock(), [] { return std::uint64_t{4}; });
  std::optional<TcpDial> dial_;
  TcpDial::Connected connected_;
};

TEST_F(TcpDialTest, FirstThatAccepts_IsConnected) {
  const Listening open;
  const Listening second;
  const util::Address closed = loopback(test::free_port());
  EXPECT_EQ(connect({closed, closed}, 10s), std::nullopt);
  EXPECT_EQ(why_, "Connection refused");
  EXPECT_EQ(connect({closed, closed, open.address(), second.address()}, 10s), 2U);
}

TEST_F(TcpDialTest, SilentAddress_IsFollowedByTheNextInTime) {
  const Silent silent;
  const Listening open;
  EXPECT_EQ(connect({silent.address(), open.address()}, 1s), 1U);
}

TEST_F(TcpDialTest, AddressOfOtherConnections_ComesFirst) {
  const Listening first;
  const Listening second;
  const auto there = std::make_shared<const util::Address>(second.address());
  hint_.peer = there;
  EXPECT_EQ(connect({first.address(), second.address()}, 10s), 1U);
}

TEST_F(TcpDialTest, AddressOfAWrongServer_ComesLast) {
  const Listening first;
  const Listening second;
  const Listening third;
  const std::vector all = {first.address(), second.address(), third.address()};
  const auto there = std::make_shared<const util::Address>(second.address());
  hint_.peer = there;
  hint_.refuse(second.address());
  EXPECT_EQ(connect(all, 10s), 0U) << "it is the only one refused";
  hint_.refuse(first.address());
  EXPECT_EQ(connect(all, 10s), 2U);
  hint_.refuse(third.address());
  EXPECT_EQ(connect(all, 10s), 1U) << "it was refused first";
  hint_.refuse(second.address());
  EXPECT_EQ(connect(all, 10s), 0U);
  EXPECT_EQ(hint_.refused.size(), 3U) << "each once";
}

}  // namespace
}  // namespace dlock::common
