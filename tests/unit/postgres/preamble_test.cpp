#include "backends/postgres/sql/preamble.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>

namespace dlock::postgres {

namespace {

using namespace std::chrono_literals;
using Settings = std::map<std::string, std::string>;

Settings settings_for(const Purpose& purpose, int version = 150020) {
  const Preamble preamble(purpose, {.version = version, .backend_pid = 77});
  Settings settings;
  for (const Command& command : preamble.commands()) {
    if (!command.params.empty()) settings[command.params.at(0).value()] = command.params.at(1).value();
  }
  return settings;
}

Results answer(const std::string& pid, const std::string& standby = "f", const std::string& read_only = "off") {
  return {{.rows = {{pid, standby, read_only}}}};
}

TEST(PostgresPreamble, LockSession_ServerEndsItAfterALeaseWithoutAnswer) {
  for (const auto lease : {1s, 3s, 10s, 25s, 60s}) {
    const Settings settings = settings_for({.session_lease = lease});
    const auto number = [&](const std::string& name) { return std::stoi(settings.at(name)); };
    for (const char* const name : {"idle_session_timeout", "idle_in_transaction_session_timeout", "tcp_user_timeout"}) {
      EXPECT_EQ(number(name), lease / 1ms) << name;
    }
    const auto probes =
        number("tcp_keepalives_idle") + number("tcp_keepalives_interval") * number("tcp_keepalives_count");
    EXPECT_GE(probes, lease.count());
    EXPECT_LE(probes, lease.count() + 4);
  }
}

// Hazard: a busy lock ends the session (`exit_on_error`)
TEST(PostgresPreamble, OtherSession_HasNoLimits) {
  const Settings settings = settings_for({});
  for (const auto& [name, value] : Settings{{"idle_session_timeout", "0"},
                                            {"idle_in_transaction_session_timeout", "0"},
                                            {"statement_timeout", "0"},
                                            {"lock_timeout", "0"},
                                            {"default_transaction_isolation", "read committed"},
                                            {"default_transaction_read_only", "off"},
                                            {"search_path", "pg_catalog"},
                                            {"exit_on_error", "off"}}) {
    EXPECT_EQ(settings.at(name), value) << name;
  }
}

TEST(PostgresPreamble, LockSession_WaitsBrieflyForOtherLocks) {
  EXPECT_EQ(settings_for({.session_lease = 10s, .lock_patience = 250ms}).at("lock_timeout"), "250");
  EXPECT_EQ(settings_for({.session_lease = 10s, .lock_patience = 1ns}).at("lock_timeout"), "1") << "0 is for ever";
  EXPECT_EQ(settings_for({.session_lease = 10s}).at("lock_timeout"), "0");
}

// Hazard: a setting that the server does not know ends the connection
TEST(PostgresPreamble, OldServer_IsAskedOnlyForItsSettings) {
  for (const auto& [name, since] : std::map<std::string, int>{{"jit", 110000},
                                                              {"plan_cache_mode", 120000},
                                                              {"tcp_user_timeout", 120000},
                                                              {"idle_session_timeout", 140000},
                                                              {"client_connection_check_interval", 140000},
                                                              {"transaction_timeout", 170000}}) {
    EXPECT_FALSE(settings_for({}, since - 1).contains(name)) << name;
    EXPECT_TRUE(settings_for({}, since).contains(name)) << name;
  }
  EXPECT_EQ(settings_for({}).at("jit"), "off");
  EXPECT_EQ(settings_for({}).at("plan_cache_mode"), "force_generic_plan");
}

// Unless the user vouches for the pooler, settings are made only in the process that the client is connected to.
TEST(PostgresPreamble, AnotherProcessAnswers_IsAPooler) {
  const struct {
    Pooler pooler;
    const char* pid;
    const char* read_only;
    bool is_pooled;
    const char* only_for = "77";
  } rows[] = {
      {Pooler::detect, "77", "on", false},      {Pooler::detect, "78", "off", true},
      {Pooler::detect, "78", "on", true},  // for good only there: elsewhere the preamble has changed it
      {Pooler::transaction, "77", "off", true}, {Pooler::session, "78", "on", false, "0"},
  };
  for (const auto& row : rows) {
    Preamble preamble({}, {.version = 150020, .backend_pid = 77, .pooler = row.pooler});
    for (const Command& command : preamble.commands()) {
      EXPECT_EQ(command.params.empty() ? row.only_for : command.params.at(2), row.only_for);
    }
    EXPECT_TRUE(preamble.answered(0, {}, answer(row.pid, "f", row.read_only)));
    EXPECT_EQ(preamble.server().pooled, row.is_pooled);
    EXPECT_EQ(preamble.server().read_only, row.is_pooled && row.read_only == std::string("on"));
    EXPECT_EQ(preamble.server().backend_pid, std::stoi(row.pid));
    EXPECT_FALSE(preamble.server().standby);
    EXPECT_TRUE(preamble.answered(0, {}, answer(row.pid, "t")));
    EXPECT_TRUE(preamble.server().standby);
  }
}

TEST(PostgresPreamble, RefusedSetting_IsIgnoredButTheQueryIsNot) {
  for (const bool takes_effect : {false, true}) {
    Preamble preamble({.session_lease = 10s}, {.version = 150020, .backend_pid = 77});
    EXPECT_FALSE(preamble.answered(0, {.problem = Problem::refused, .server_code = "42501"}, {}));
    EXPECT_FALSE(preamble.answered(0, {}, answer("nonsense")));
    EXPECT_TRUE(preamble.answered(0, {}, answer("77")));
    for (std::size_t i = 1; i < preamble.commands().size(); ++i) {
      EXPECT_TRUE(takes_effect ? preamble.answered(i, {}, {{.rows = {{preamble.commands()[i].params.at(1)}}}})
                               : preamble.answered(i, {.problem = Problem::refused, .server_code = "42704"}, {}));
    }
    EXPECT_EQ(preamble.server().ends_silent_sessions, takes_effect);
  }
}

}  // namespace

}  // namespace dlock::postgres
