// One connection: its requests, and the bytes that wait to be sent. Over real sockets of this machine: which of a
// host's addresses it is made to.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
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
  char name = 0;
  std::function<void()> done = {};
};

// A script of what happens to requests with a letter each, and what is written meanwhile:
//
//   wait a 2000, send a 2000 [1000]: a deadline in 2 s, and a patience of 1 s
//   take_waiting, take_oldest, take a: writes the letters of those that it takes, "-" for none
//   withdraw a: writes "unsent" or "sent"; clear
//   1000: time passes ("|"); sleep 1000: the process is suspended meanwhile
//   answer: the oldest is, the next time that it catches up
//   keep 8000: the connection is kept for so long the next time that it is unresponsive
//
// "a" or "a!" was given up, before or after it was sent; "?": it caught up; "unresponsive".
class RequestTableTest : public testing::Test, public RequestTable<Payload>::User {
 protected:
  using Table = RequestTable<Payload>;

  std::string run(const std::string& script) {
    log_.clear();
    when_catching_up_ = when_unresponsive_ = when_given_up_ = [] {};
    keep_for_.reset();
    table_.emplace(engine_, *this);
    std::istringstream statements(script);
    for (std::string statement; std::getline(statements >> std::ws, statement, ';');) follow(statement);
    return log_;
  }

  std::optional<Table> table_;
  std::function<void()> when_catching_up_;
  std::function<void()> when_unresponsive_;
  std::function<void()> when_given_up_;
  test::ManualEngine engine_;

 private:
  void write(const std::string& what) { log_ += (log_.empty() ? "" : " ") + what; }
  void write(const std::optional<Table::Entry>& taken) {
    write(taken ? std::string(1, taken->payload.name) : std::string("-"));
  }
  void follow(const std::string& statement) {
    std::istringstream words(statement);
    std::string verb;
    char name = 0;
    words >> verb;
    if (verb == "wait" || verb == "send" || verb == "take" || verb == "withdraw") words >> name;
    std::chrono::milliseconds time{};
    if (long count = 0; words >> count) time = std::chrono::milliseconds(count);
    if (verb == "wait" || verb == "send") {
      Table::Entry entry{.id = ids_[name] = table_->next_id(), .deadline = engine_.now() + time, .payload = {}};
      if (long patience = 0; words >> patience) entry.patience = engine_.now() + std::chrono::milliseconds(patience);
      entry.payload = {name, [] {}};
      verb == "wait" ? table_->wait(std::move(entry)) : (void)table_->sent(std::move(entry));
    } else if (verb == "take_waiting") {
      for (auto& each : table_->take_waiting()) write(std::optional(std::move(each)));
      EXPECT_TRUE(table_->waiting().empty());
    } else if (verb == "take_oldest") {
      write(table_->take_oldest());
    } else if (verb == "take") {
      write(table_->take(ids_[name]));
    } else if (verb == "withdraw") {
      write(table_->withdraw(ids_[name]) ? "unsent" : "sent");
    } else if (verb == "clear") {
      table_->clear();
    } else if (verb == "answer") {
      when_catching_up_ = [this] { (void)table_->take_oldest(); };
    } else if (verb == "keep") {
      keep_for_ = time;
    } else if (verb == "sleep") {
      engine_.sleep_through(time);
    } else {
      write("|");
      engine_.advance(std::chrono::milliseconds(std::stol(verb)));
    }
  }

  void requests_catch_up() override {
    write("?");
    when_catching_up_();
  }
  TimePoint requests_unresponsive() override {
    write("unresponsive");
    const auto keep_for = std::exchange(keep_for_, std::nullopt);
    when_unresponsive_();
    return keep_for ? engine_.now() + *keep_for : TimePoint::max();
  }
  void requests_overdue(std::vector<Table::Entry> sent, std::vector<Table::Entry> unsent) override {
    for (const auto& each : sent) write(name_of(each.id) + "!");
    for (const auto& each : unsent) write(name_of(each.id));
    when_given_up_();
  }
  std::string name_of(Table::Id id) {
    for (const auto& [name, each] : ids_) {
      if (each == id) return {name};
    }
    return "unknown";
  }

  std::map<char, Table::Id> ids_;
  std::string log_;
  std::optional<std::chrono::nanoseconds> keep_for_;
};

TEST_F(RequestTableTest, Requests_AreAnsweredOrGivenUpOnce) {
  struct Row {
    const char* name;
    const char* script;
    const char* log;
  };
  for (const auto& [name, script, log] : {
           Row{"sent in their order", "wait a 9; wait b 9; wait c 9; take_waiting", "a b c"},
           Row{"answered in their order or by id",
               "send a 9; send b 9; send c 9; take b; take b; take_oldest; take_oldest; take_oldest", "b - a c -"},
           // An answer might have been there; one that is given up stays, because its answer may still come.
           Row{"each has its deadline",
               "send a 3000; send b 1000; wait c 2000; 1000; 1000; 1000; 3600000; take_oldest; take_oldest",
               "| ? b! | ? c | ? a! | a b"},
           Row{"no answer can be there of one that waits", "wait a 1000; wait b 2000; 1000; take_waiting", "| a b"},
           Row{"an answer that arrived during a suspension counts", "answer; send a 1000; sleep 3600000", "?"},
           Row{"the patience is that of the oldest",
               "keep 8000; send a 3600000 2000; send b 3600000 3000; 1999; 1; 7000; 1000",
               "| | ? unresponsive | | ? unresponsive"},
           Row{"withdrawn", "wait a 1000; send b 1000; withdraw a; withdraw b; 3600000; take_oldest",
               "unsent sent | ? b"},
           Row{"unknown", "send a 1000; take a; withdraw a; 3600000", "a sent |"},
           Row{"cleared, and used again", "wait c 1000; send d 1000 1000; clear; 3600000; wait e 1000; 1000", "| | e"},
       }) {
    EXPECT_EQ(run(script), log) << name;
  }
}

TEST_F(RequestTableTest, Callee_MayDestroyTheTable) {
  for (auto* const callee : {&when_catching_up_, &when_unresponsive_, &when_given_up_}) {
    (void)run("send a 1000 1000");
    *callee = [this] { table_.reset(); };
    engine_.advance(1h);
    EXPECT_FALSE(table_);
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
