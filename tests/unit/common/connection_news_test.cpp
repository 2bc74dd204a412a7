#include "backends/common/connection_news.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::common {

namespace {

class ConnectionNewsTest : public testing::Test {
 protected:
  [[nodiscard]] std::string heard() const {
    std::string out;
    for (const auto state : host.connections) {
      out += state == ConnectionEvent::State::connected ? '+' : '-';
    }
    return out;
  }

  test::ManualEngine engine;
  test::RecordingHost host{engine};
  ConnectionNews news{host};
  ConnectionNews::Source a{news};
  ConnectionNews::Source b{news};
  const Failure gone{errc::unavailable, "gone"};
};

TEST_F(ConnectionNewsTest, TheFirstThatStandsAndTheFirstThatBreaksAreTold) {
  a.connected();
  b.connected();
  EXPECT_EQ(heard(), "+");
  a.broken(gone);
  b.broken(gone);
  EXPECT_EQ(heard(), "+-");
}

TEST_F(ConnectionNewsTest, ItStandsAgainWhenNoneIsBrokenAnyMore) {
  a.connected();
  b.connected();
  a.broken(gone);
  a.broken(gone);
  b.broken(gone);
  a.connected();
  EXPECT_EQ(heard(), "+-");
  b.connected();
  EXPECT_EQ(heard(), "+-+");
}

TEST_F(ConnectionNewsTest, OneThatWasNeverMadeIsNotMissed) {
  a.connected();
  a.broken(gone);
  a.connected();
  EXPECT_EQ(heard(), "+-+");
}

TEST_F(ConnectionNewsTest, ABreakBeforeAnAnswerIsNewsOnlyForAnotherReason) {
  for (int i = 0; i < 3; ++i) {
    a.opened();
    a.broken(gone);
  }
  EXPECT_EQ(heard(), "-");
  a.broken({errc::access_denied, "gone"});
  a.broken(gone);
  EXPECT_EQ(heard(), "--");
  for (int i = 0; i < 100; ++i) a.broken({errc::unavailable, "port " + std::to_string(i)});
  EXPECT_EQ(heard(), "--------") << "reasons that differ each time";
  a.connected();
  a.broken(gone);
  EXPECT_EQ(heard(), "--------+-");
}

TEST_F(ConnectionNewsTest, AHostThatIsNotToldHearsNothing) {
  ConnectionNews silent{host, false};
  ConnectionNews::Source source{silent};
  source.connected();
  source.broken(gone);
  EXPECT_EQ(heard(), "");
}

}  // namespace

}  // namespace dlock::common
