// What nodes say about who has which slot, and what they cannot mean.
#include "backends/redis/cluster/slot_map.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "backends/redis/connection/redirection.hpp"
#include "fake_server.hpp"

namespace dlock::redis {

namespace {

const common::Host asked{.name = "asked", .port = 6379};

std::string list_in_bytes(const std::vector<std::string>& elements) {
  std::string out = "*" + std::to_string(elements.size()) + "\r\n";
  for (const std::string& element : elements) out += element;
  return out;
}

std::string node_in_bytes(const std::string& name, std::int64_t port) {
  return list_in_bytes({bulk(name), number(port), bulk("its id"), list_in_bytes({})});
}

Result<std::vector<SlotRange>> slots_in(const std::string& bytes) {
  ReplyReader reader;
  reader.feed(bytes);
  const auto reply = reader.next();
  EXPECT_TRUE(reply) << bytes;
  return read_slots(reply.value_or(Reply{}), asked);
}

// A map of one range.
Result<std::vector<SlotRange>> range_in(const std::vector<std::string>& fields) {
  return slots_in(list_in_bytes({list_in_bytes(fields)}));
}

TEST(RedisSlotMap, NamesTheMasterOfEachRange) {
  const auto map = slots_in(list_in_bytes({
      list_in_bytes({number(0), number(8191), node_in_bytes("one", 7000), node_in_bytes("two", 7001),
                     node_in_bytes("three", 7002)}),
      list_in_bytes({number(8192), number(16383), node_in_bytes("::1", 65535)}),
  }));
  ASSERT_TRUE(map.ok());
  ASSERT_EQ(map.value().size(), 2U);
  const SlotRange& first = map.value()[0];
  EXPECT_EQ(first.first, 0);
  EXPECT_EQ(first.last, 8191);
  EXPECT_EQ(first.master.to_string(), "one:7000");
  const SlotRange& second = map.value()[1];
  EXPECT_EQ(second.first, 8192);
  EXPECT_EQ(second.last, 16383);
  EXPECT_EQ(second.master.to_string(), "[::1]:65535");
}

TEST(RedisSlotMap, MayBeEmptyOrOfOneSlot) {
  const auto none = slots_in(list_in_bytes({}));
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none.value().empty());
  const auto one = range_in({number(5), number(5), node_in_bytes("one", 1)});
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one.value().front().first, one.value().front().last);
}

TEST(RedisSlotMap, ANodeWithoutANameIsTheOneThatWasAsked) {
  for (const std::string& name : {bulk(""), bulk("?"), std::string("$-1\r\n")}) {
    const auto map = range_in({number(0), number(1), list_in_bytes({name, number(7000)})});
    ASSERT_TRUE(map.ok()) << name;
    EXPECT_EQ(map.value().front().master.to_string(), "asked:7000") << name;
  }
}

TEST(RedisSlotMap, ThatMakesNoSenseIsRefused) {
  const std::string good = node_in_bytes("one", 7000);
  const std::vector<std::vector<std::string>> ranges = {
      {number(0), number(16384), good},
      {number(16384), number(16384), good},
      {number(-1), number(1), good},
      {number(65536), number(65536), good},
      {number(2), number(1), good},
      {number(0), number(1)},
      {number(0)},
      {},
      {bulk("0"), number(1), good},
      {number(0), bulk("1"), good},
      {number(0), number(1), bulk("one")},
      {number(0), number(1), list_in_bytes({})},
      {number(0), number(1), list_in_bytes({bulk("one")})},
      {number(0), number(1), list_in_bytes({number(1), number(7000)})},
      {number(0), number(1), list_in_bytes({bulk("one"), bulk("7000")})},
      {number(0), number(1), node_in_bytes("one", 0)},
      {number(0), number(1), node_in_bytes("one", -1)},
      {number(0), number(1), node_in_bytes("one", 65536)},
      {number(0), number(1), node_in_bytes("o ne", 7000)},
      {number(0), number(1), node_in_bytes("one,two", 7000)},
      {number(0), number(1), node_in_bytes("/tmp/socket", 7000)},
      {number(0), number(1), node_in_bytes("one\r\n", 7000)},
      {number(0), number(1), node_in_bytes("\x1b[2J", 7000)},
      {number(0), number(1), node_in_bytes(std::string("one\0", 4), 7000)},
  };
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto map = range_in(ranges[i]);
    ASSERT_FALSE(map.ok()) << i;
    EXPECT_EQ(map.failure().code, errc::protocol) << i;
    EXPECT_NE(map.failure().detail.find("asked:6379"), std::string::npos) << map.failure().detail;
  }
  EXPECT_FALSE(slots_in(list_in_bytes({number(1)})).ok());
  EXPECT_FALSE(slots_in(list_in_bytes({list_in_bytes({number(0), number(1), good}), bulk("x")})).ok())
      << "half of it is no map";
}

TEST(RedisSlotMap, HasNoMoreRangesThanThereAreSlots) {
  Reply one{.type = Reply::Type::array};
  one.elements = {{.type = Reply::Type::integer}, {.type = Reply::Type::integer}, {.type = Reply::Type::array}};
  one.elements[2].elements = {{.type = Reply::Type::string, .text = "one"},
                              {.type = Reply::Type::integer, .integer = 7000}};
  Reply map{.type = Reply::Type::array};
  map.elements.assign(16384, one);
  EXPECT_TRUE(read_slots(map, asked).ok());
  map.elements.push_back(one);
  EXPECT_FALSE(read_slots(map, asked).ok());
}

TEST(RedisSlotMap, IsAnArray) {
  for (const std::string bytes : {"+OK\r\n", ":1\r\n", "$-1\r\n", "$2\r\nhi\r\n"}) {
    const auto map = slots_in(bytes);
    ASSERT_FALSE(map.ok()) << bytes;
    EXPECT_EQ(map.failure().code, errc::protocol) << bytes;
  }
}

TEST(RedisSlotMap, AnErrorIsTakenForWhatItSays) {
  const auto map = slots_in("-ERR This instance has cluster support disabled\r\n");
  ASSERT_FALSE(map.ok());
  EXPECT_EQ(map.failure().code, errc::unsupported);
}

// --- Redirections ----------------------------------------------------------------------------------------------------

TEST(RedisRedirection, NamesTheSlotAndTheNode) {
  const auto moved = read_redirection("MOVED 3999 127.0.0.1:6381", asked);
  ASSERT_TRUE(moved);
  EXPECT_FALSE(moved->asks);
  EXPECT_EQ(moved->slot, 3999);
  EXPECT_EQ(moved->to.to_string(), "127.0.0.1:6381");
  const auto ask = read_redirection("ASK 16383 a-host.example:65535", asked);
  ASSERT_TRUE(ask);
  EXPECT_TRUE(ask->asks);
  EXPECT_EQ(ask->slot, 16383);
  EXPECT_EQ(ask->to.to_string(), "a-host.example:65535");
}

TEST(RedisRedirection, AnIpv6AddressHasNoBrackets) {
  const auto moved = read_redirection("MOVED 0 ::1:7000", asked);
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->to.name, "::1");
  EXPECT_EQ(moved->to.port, 7000);
}

TEST(RedisRedirection, WithoutANameItIsToTheNodeThatWasAsked) {
  for (const char* error : {"MOVED 1 :7000", "MOVED 1 ?:7000"}) {
    const auto moved = read_redirection(error, asked);
    ASSERT_TRUE(moved) << error;
    EXPECT_EQ(moved->to.to_string(), "asked:7000") << error;
  }
}

TEST(RedisRedirection, ThatMakesNoSenseIsNone) {
  std::istringstream errors(
      ";MOVED;MOVED ;MOVED 1;MOVED 1 ;MOVED 1 one;MOVED 1 one:;MOVED 1 :;MOVED one:7000;MOVED one:7000 1;"
      "MOVED  1 one:7000;MOVED 1  one:7000;MOVED 16384 one:7000;MOVED 65536 one:7000;MOVED -1 one:7000;"
      "MOVED +1 one:7000;MOVED 1x one:7000;MOVED 99999999999999999999 one:7000;MOVED 1 one:0;"
      "MOVED 1 one:65536;MOVED 1 one:-1;MOVED 1 one:7000x;MOVED 1 [::1]:7000;MOVED 1 o\tne:7000;"
      "MOVED 1 one\r\n:7000;MOVED 1 \x1b[2J:7000;MOVED 1 one,two:7000;MOVED 1 /tmp/socket:7000;"
      "MOVEDX 1 one:7000;moved 1 one:7000;-MOVED 1 one:7000;ASKING 1 one:7000;ASK;"
      "TRYAGAIN Multiple keys request during rehashing of slot;CLUSTERDOWN Hash slot not served;"
      "ERR MOVED 1 one:7000");
  for (std::string error; std::getline(errors, error, ';');) {
    EXPECT_FALSE(read_redirection(error, asked)) << error;
  }
}

}  // namespace

}  // namespace dlock::redis
