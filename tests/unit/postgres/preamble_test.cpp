#include "backends/postgres/sql/preamble.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace dlock::postgres {

namespace {

using namespace std::chrono_literals;

std::map<std::string, std::string> settings_of(const Preamble& preamble) {
  std::map<std::string, std::string> settings;
  for (std::size_t i = 1; i < preamble.commands().size(); ++i) {
    const Command& command = preamble.commands()[i];
    settings[command.params.at(0).value()] = command.params.at(1).value();
  }
  return settings;
}

Preamble preamble_for(const Purpose& purpose, int version = 150020) {
  return Preamble(purpose, {.version = version, .backend_pid = 77});
}

Results answer(const std::string& pid, const std::string& standby = "f", const std::string& read_only = "off") {
  return {{.rows = {{pid, standby, read_only}}}};
}

TEST(PostgresPreamble, ALockSessionIsEndedByTheServerWhenItIsSilentForItsLease) {
  const auto settings = settings_of(preamble_for({.session_lease = 10s}));
  EXPECT_EQ(settings.at("idle_session_timeout"), "10000");
  EXPECT_EQ(settings.at("idle_in_transaction_session_timeout"), "10000");
  EXPECT_EQ(settings.at("tcp_user_timeout"), "10000");
}

TEST(PostgresPreamble, TheServersProbesTakeAtLeastTheLease) {
  for (const auto lease : {1s, 3s, 10s, 25s, 60s}) {
    const auto settings = settings_of(preamble_for({.session_lease = lease}));
    const auto number = [&](const std::string& name) { return std::stoi(settings.at(name)); };
    const auto whole =
        number("tcp_keepalives_idle") + number("tcp_keepalives_interval") * number("tcp_keepalives_count");
    EXPECT_GE(whole, lease.count());
    EXPECT_LE(whole, lease.count() + 4);
  }
}

TEST(PostgresPreamble, OtherSessionsHaveNoLimits) {
  const auto settings = settings_of(preamble_for({}));
  for (const char* const name :
       {"idle_session_timeout", "idle_in_transaction_session_timeout", "statement_timeout", "lock_timeout"}) {
    EXPECT_EQ(settings.at(name), "0") << name;
  }
  EXPECT_EQ(settings.at("default_transaction_isolation"), "read committed");
  EXPECT_EQ(settings.at("default_transaction_read_only"), "off");
  EXPECT_EQ(settings.at("search_path"), "pg_catalog");
  EXPECT_EQ(settings.at("exit_on_error"), "off");
}

TEST(PostgresPreamble, ASessionWithLocksWaitsForNobodyElsesForLong) {
  EXPECT_EQ(settings_of(preamble_for({.session_lease = 10s, .lock_patience = 250ms})).at("lock_timeout"), "250");
  EXPECT_EQ(settings_of(preamble_for({.session_lease = 10s, .lock_patience = 1ns})).at("lock_timeout"), "1")
      << "0 would be for ever";
  EXPECT_EQ(settings_of(preamble_for({.session_lease = 10s})).at("lock_timeout"), "0");
}

TEST(PostgresPreamble, AServerIsAskedOnlyForWhatItsVersionHas) {
  EXPECT_FALSE(settings_of(preamble_for({}, 100000)).contains("jit"));
  EXPECT_EQ(settings_of(preamble_for({}, 110000)).at("jit"), "off");
  EXPECT_FALSE(settings_of(preamble_for({}, 110000)).contains("plan_cache_mode"));
  EXPECT_EQ(settings_of(preamble_for({}, 120000)).at("plan_cache_mode"), "force_generic_plan");
  EXPECT_FALSE(settings_of(preamble_for({}, 130000)).contains("idle_session_timeout"));
  EXPECT_FALSE(settings_of(preamble_for({}, 130000)).contains("client_connection_check_interval"));
  EXPECT_FALSE(settings_of(preamble_for({}, 150000)).contains("transaction_timeout"));
  EXPECT_TRUE(settings_of(preamble_for({}, 170000)).contains("transaction_timeout"));
}

TEST(PostgresPreamble, SettingsAreMadeOnlyInTheProcessThatWeAreConnectedTo) {
  const Preamble preamble = preamble_for({});
  for (const auto& command : preamble.commands()) {
    if (!command.params.empty()) {
      EXPECT_EQ(command.params.at(2), "77");
    }
  }
  // Unless the user vouches for it.
  const Preamble vouched({}, {.version = 150020, .backend_pid = 77, .pooler = Pooler::session});
  EXPECT_EQ(vouched.commands().at(1).params.at(2), "0");
}

TEST(PostgresPreamble, AnotherProcessAnsweringMeansAPooler) {
  Preamble direct({}, {.version = 150020, .backend_pid = 77});
  EXPECT_TRUE(direct.answered(0, {}, answer("77")));
  EXPECT_FALSE(direct.server().pooled);
  Preamble pooled({}, {.version = 150020, .backend_pid = 77});
  EXPECT_TRUE(pooled.answered(0, {}, answer("78")));
  EXPECT_TRUE(pooled.server().pooled);
  EXPECT_EQ(pooled.server().backend_pid, 78);
  Preamble vouched({}, {.version = 150020, .backend_pid = 77, .pooler = Pooler::session});
  EXPECT_TRUE(vouched.answered(0, {}, answer("78")));
  EXPECT_FALSE(vouched.server().pooled);
}

TEST(PostgresPreamble, KnowsAStandby) {
  Preamble preamble = preamble_for({});
  EXPECT_TRUE(preamble.answered(0, {}, answer("77", "t")));
  EXPECT_TRUE(preamble.server().standby);
}

TEST(PostgresPreamble, ReadOnlyByDefaultIsForGoodOnlyBehindAPooler) {
  Preamble direct = preamble_for({});
  EXPECT_TRUE(direct.answered(0, {}, answer("77", "f", "on")));
  EXPECT_FALSE(direct.server().read_only);
  Preamble pooled = preamble_for({});
  EXPECT_TRUE(pooled.answered(0, {}, answer("78", "f", "on")));
  EXPECT_TRUE(pooled.server().read_only);
  EXPECT_FALSE(pooled.server().standby);
}

TEST(PostgresPreamble, NoSettingHasToSucceedButTheQuestionDoes) {
  Preamble preamble = preamble_for({.session_lease = 10s});
  EXPECT_TRUE(preamble.answered(0, {}, answer("77")));
  for (std::size_t i = 1; i < preamble.commands().size(); ++i) {
    EXPECT_TRUE(preamble.answered(i, {.problem = Problem::refused, .sqlstate = "42704"}, {}));
  }
  EXPECT_FALSE(preamble.server().ends_silent_sessions);
  EXPECT_FALSE(preamble_for({}).answered(0, {.problem = Problem::refused, .sqlstate = "42501"}, {}));
  EXPECT_FALSE(preamble_for({}).answered(0, {}, answer("nonsense")));
}

TEST(PostgresPreamble, KnowsWhichSettingsTookEffect) {
  Preamble preamble = preamble_for({.session_lease = 10s});
  EXPECT_TRUE(preamble.answered(0, {}, answer("77")));
  for (std::size_t i = 1; i < preamble.commands().size(); ++i) {
    const auto& value = preamble.commands()[i].params.at(1);
    EXPECT_TRUE(preamble.answered(i, {}, {{.rows = {{value}}}}));
  }
  EXPECT_TRUE(preamble.server().ends_silent_sessions);
}

}  // namespace

}  // namespace dlock::postgres
