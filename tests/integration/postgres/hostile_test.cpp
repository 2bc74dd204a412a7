// Names of locks, owners and holders that look like SQL, thrown at every statement on a real server: they come back as
// they went in, byte by byte, and nothing else is touched.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/advisory_key.hpp"
#include "backends/postgres/sql/statements.hpp"
#include "live_services.hpp"
#include "postgres/shared_server.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/unit/postgres/hostile_names.hpp"

namespace dlock::test {

namespace {

using postgres::Durability;
using postgres::Rows;
using postgres::Statement;
using Params = std::vector<postgres::Parameter>;

// In the order of their bytes, none twice.
std::vector<std::string> hostile_locks() {
  std::vector<std::string> names = postgres::hostile_names(dlock::test::sanitized ? 10 : 60, 512);
  for (const char* name : {"NULL",
                           "null",
                           "{}",
                           "{a,b}",
                           "{\"a\"}",
                           "\\",
                           "\\\\",
                           "\\x41",
                           " x ",
                           "  ",
                           ",",
                           "a,b",
                           "''",
                           "x'y",
                           "; DROP SCHEMA dlock CASCADE; --",
                           "'; DELETE FROM dlock.lease; --",
                           "$1",
                           "$2::text",
                           "%",
                           "_",
                           "lock",
                           "LOCK",
                           "Lock",
                           "\u00e4",
                           "a\u0308",
                           "\u01c5",
                           "\ufeff",
                           "\u200b"}) {
    names.emplace_back(name);
  }
  names.emplace_back(512, '\'');
  names.emplace_back(512, '"');
  names.emplace_back(512, '\\');
  const std::set<std::string> sorted(names.begin(), names.end());
  return {sorted.begin(), sorted.end()};
}

class PostgresHostileTest : public OnSharedServer<> {
 protected:
  void SetUp() override {
    server.run("DROP SCHEMA IF EXISTS dlock CASCADE");
    ASSERT_FALSE(LiveServices(server.url()).set_up());
    connection = std::make_unique<LiveConnection>(server.url());
    ASSERT_TRUE(connection->open());
  }
  void TearDown() override {
    EXPECT_EQ(server.value("SELECT count(*) FROM pg_tables WHERE schemaname = 'dlock'"),
              std::to_string(postgres::layout().size()));
    connection.reset();
  }

  Rows ask(const Statement& statement, const Params& params) {
    const auto answer = connection->ask(statement, params);
    EXPECT_EQ(answer->outcome().problem, postgres::Problem::none) << answer->outcome().failure.detail;
    return answer->results().empty() ? Rows{} : answer->results().back();
  }
  static std::vector<std::string> column(const Rows& rows, std::size_t index) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < rows.size(); ++i) texts.push_back(rows.text(i, index));
    std::sort(texts.begin(), texts.end());
    return texts;
  }
  static std::string array(const std::vector<std::string>& texts) {
    return postgres::text_array({texts.begin(), texts.end()});
  }
  std::string numbers(std::int64_t number) const {
    return postgres::bigint_array(std::vector<std::int64_t>(names.size(), number));
  }
  // An owner or holder that is as hostile as the name, and different for each.
  std::string other_of(const std::string& name) const { return name + "'\"\\{}" + name; }
  std::vector<std::string> others() const {
    std::vector<std::string> all;
    for (const std::string& name : names) all.push_back(other_of(name));
    std::sort(all.begin(), all.end());
    return all;
  }
  std::vector<std::string> in_order_of_names() const {
    std::vector<std::string> all;
    for (const std::string& name : names) all.push_back(other_of(name));
    return all;
  }
  void expect_all_inspected(const Statement& inspect, bool held) {
    for (const std::string& name : names) {
      const Rows rows = ask(inspect, {name});
      ASSERT_EQ(rows.size(), 1U) << name;
      EXPECT_EQ(rows.text(0, 0), name);
      EXPECT_EQ(rows.flag(0, 1), held) << name;
      EXPECT_EQ(rows.text(0, 2), held ? other_of(name) : "") << name;
    }
  }
  // One by one, then many at once.
  void throw_names_at(const postgres::RowStatements& s);
  // Parameters of an acquire of all names.
  Params many(const std::string& channel) const {
    const std::string other = array(in_order_of_names());
    return {array(names), other, other, numbers(60'000), other, numbers(7), numbers(0), channel};
  }

  std::unique_ptr<LiveConnection> connection;
  const std::vector<std::string> names = hostile_locks();
};

void PostgresHostileTest::throw_names_at(const postgres::RowStatements& s) {
  const std::string channel = "a\"b'c;--";
  for (const std::string& name : names) {
    const std::string other = other_of(name);
    const Rows granted = ask(s.acquire_one, {name, other, other, "60000", other, "7", "0", ""});
    ASSERT_EQ(granted.size(), 1U) << name;
    EXPECT_EQ(granted.text(0, 0), other_of(name));
    EXPECT_GT(granted.number(0, 1).value_or(0), 0) << name;
  }
  expect_all_inspected(s.inspect, true);
  const Rows listed = ask(s.list, {"1000"});
  EXPECT_EQ(column(listed, 0), names);
  EXPECT_EQ(column(listed, 2), others());
  EXPECT_EQ(column(ask(s.mark, {array(names), "60000", "30000"}), 0), names);
  EXPECT_EQ(column(ask(s.renew, {array(names), array(in_order_of_names()), numbers(60'000)}), 0), others());
  for (const std::string& name : names) {
    EXPECT_EQ(ask(s.release_one, {name, name, "1", channel}).size(), 0U) << "not that owner's";
    const Rows released = ask(s.release_one, {name, other_of(name), "0", channel});
    ASSERT_EQ(released.size(), 1U) << name;
    EXPECT_EQ(released.text(0, 0), other_of(name));
    EXPECT_TRUE(released.flag(0, 1));
  }
  expect_all_inspected(s.inspect, false);

  const Params params = many(channel);
  const Rows granted = ask(s.acquire, params);
  EXPECT_EQ(column(granted, 0), others());
  for (std::size_t i = 0; i < granted.size(); ++i) EXPECT_GT(granted.number(i, 1).value_or(0), 0);
  expect_all_inspected(s.inspect, true);
  EXPECT_EQ(column(ask(s.release, {array(names), array(in_order_of_names()), numbers(0), channel}), 0), others());
  expect_all_inspected(s.inspect, false);
  (void)ask(s.acquire, params);
  for (const std::string& name : names) {
    const Rows broken = ask(s.break_lock, {name, channel});
    ASSERT_EQ(broken.size(), 1U) << name;
    EXPECT_TRUE(broken.flag(0, 0));
  }
  expect_all_inspected(s.inspect, false);
}

TEST_F(PostgresHostileTest, NamesAreOnlyNamesForRowsWithAnExpiry) {
  throw_names_at(postgres::table_statements("dlock", Durability::async));
  EXPECT_EQ(server.value("SELECT count(*) FROM dlock.lease"), std::to_string(names.size()));
}

TEST_F(PostgresHostileTest, NamesAreOnlyNamesForRowsWithAVersion) {
  throw_names_at(postgres::optimistic_statements("dlock", Durability::async));
  EXPECT_EQ(server.value("SELECT count(*) FROM dlock.optimistic"), std::to_string(names.size()));
}

TEST_F(PostgresHostileTest, NamesAreOnlyNamesForRowsOfElections) {
  const auto table = postgres::table_statements("dlock", Durability::async, LockKind::election);
  const auto optimistic = postgres::optimistic_statements("dlock", Durability::async, LockKind::election);
  for (const postgres::RowStatements* s : {&table, &optimistic}) {
    EXPECT_EQ(column(ask(s->acquire, many("a\"b'c;--")), 0), others());
    EXPECT_EQ(ask(s->mark, {array(names), "60000", "30000"}).size(), names.size());
    EXPECT_EQ(column(ask(s->acquire, many("a\"b'c;--")), 0), others()) << "and told to those who wait";
    expect_all_inspected(s->inspect, true);
  }
}

TEST_F(PostgresHostileTest, NamesAreOnlyNamesForRowsThatSeveralMayHold) {
  const auto s = postgres::sharing_statements("dlock", Durability::async, LockKind::semaphore);
  const auto change = [&](std::int64_t what) {
    const Rows rows = ask(s.change, {array(names), array(in_order_of_names()), numbers(what), numbers(60000),
                                     array(in_order_of_names()), numbers(1), numbers(1), numbers(0), "a\"b'c;--"});
    ASSERT_EQ(rows.size(), names.size());
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_TRUE(rows.flag(i, 1)) << what << ": " << rows.text(i, 0);
  };
  change(2);
  expect_all_inspected(s.inspect, true);
  EXPECT_EQ(column(ask(s.list, {"1000"}), 0), names);
  change(1);
  EXPECT_EQ(ask(s.mark, {array(names), "60000", "30000"}).size(), names.size());
  change(0);
  expect_all_inspected(s.inspect, false);
  change(2);
  for (const std::string& name : names) EXPECT_TRUE(ask(s.break_lock, {name, "a\"b'c;--"}).flag(0, 0)) << name;
  server.run("UPDATE dlock.lease_sem SET token = 1, waiting_until = '-infinity'");
  for (const std::string& name : names) EXPECT_EQ(ask(s.forget, {name, "1000", "10"}).text(0, 0), name);
}

TEST_F(PostgresHostileTest, NamesAreOnlyNamesForRowsThatAreLocked) {
  const auto s = postgres::for_update_statements("dlock", Durability::async);
  for (const std::string& name : names) {
    (void)ask(s.ensure, {name});
    (void)ask(s.begin, {});
    (void)ask(s.set_patience, {"5000"});
    EXPECT_GT(ask(s.try_lock, {name, other_of(name)}).number(0, 0).value_or(0), 0) << name;
    const Rows held = ask(s.inspect, {name});
    EXPECT_EQ(held.text(0, 0), name);
    EXPECT_TRUE(held.flag(0, 1)) << name;
    (void)ask(s.heartbeat, {});
    (void)ask(s.commit, {});
    (void)ask(s.begin, {});
    EXPECT_GT(ask(s.lock, {name, other_of(name)}).number(0, 0).value_or(0), 0) << name;
    (void)ask(s.rollback, {});
    EXPECT_FALSE(ask(s.inspect, {name}).flag(0, 1)) << name;
    EXPECT_EQ(ask(s.break_lock, {name, "{}"}).size(), 0U) << name;
    (void)ask(s.begin, {});
    EXPECT_GT(ask(s.try_in_transaction, {name, other_of(name)}).number(0, 0).value_or(0), 0) << name;
    EXPECT_GT(ask(s.lock_in_transaction, {name, other_of(name), "5000", ""}).number(0, 0).value_or(0), 0) << name;
    EXPECT_EQ(ask(s.ensure_in_transaction, {name, "5000"}).size(), 1U) << name;
    (void)ask(s.rollback, {});
  }
  EXPECT_EQ(column(ask(s.list, {"1000"}), 0), names);
  EXPECT_EQ(server.value("SELECT count(*) FROM dlock.row_lock"), std::to_string(names.size()));
}

TEST_F(PostgresHostileTest, NamesAreOnlyNamesForAdvisoryLocks) {
  for (const char* scheme : {"sha256", "medallion", "crc32pair:7", "hashtextextended"}) {
    const auto key_scheme = postgres::parse_key_scheme(scheme).value();
    server.run("TRUNCATE dlock.fence");
    for (const std::string& name : names) {
      const auto key = postgres::advisory_key(key_scheme, "dlock", name);
      const auto s = postgres::advisory_statements("dlock", Durability::async, key.space);
      const std::string parameter = postgres::key_parameter(key, name);
      // Statements of this loop live shorter than the connection.
      const auto once = [&](const Statement& statement, Params params) {
        const auto answer = connection->ask(statement.sql, std::move(params));
        EXPECT_EQ(answer->outcome().problem, postgres::Problem::none) << answer->outcome().failure.detail;
        return answer->results().empty() ? Rows{} : answer->results().back();
      };
      EXPECT_GT(once(s.try_lock, {parameter, name, other_of(name)}).number(0, 0).value_or(0), 0) << name;
      const Rows held = once(s.inspect, {parameter, name});
      ASSERT_EQ(held.size(), 1U);
      EXPECT_EQ(held.text(0, 0), name);
      EXPECT_TRUE(held.flag(0, 1)) << name;
      EXPECT_EQ(held.text(0, 2), other_of(name));
      EXPECT_TRUE(once(s.unlock, {parameter}).flag(0, 0)) << name;
      EXPECT_GT(once(s.lock_slice, {parameter, name, other_of(name), "5000"}).number(0, 0).value_or(0), 0) << name;
      EXPECT_TRUE(once(s.unlock, {parameter}).flag(0, 0)) << name;
      const Rows many = once(s.try_many, {array({parameter}), array({name}), array({other_of(name)})});
      EXPECT_EQ(many.text(0, 0), name);
      EXPECT_TRUE(once(s.unlock_many, {array({parameter})}).flag(0, 0)) << name;
      EXPECT_EQ(once(s.break_lock, {parameter, "{}"}).size(), 0U) << name;
      EXPECT_GT(once(s.try_in_transaction, {parameter, name, other_of(name)}).number(0, 0).value_or(0), 0) << name;
      EXPECT_GT(once(s.lock_in_transaction, {parameter, name, other_of(name), "5000", ""}).number(0, 0).value_or(0), 0);
      EXPECT_FALSE(once(s.inspect, {parameter, name}).flag(0, 1)) << name;
      const auto rw =
          postgres::advisory_statements("dlock", Durability::async, key.space, LockKind::read_write, Mode::shared);
      for (const Statement* each : {&rw.try_lock, &rw.join}) {
        EXPECT_GT(once(*each, {parameter, name, other_of(name), "2"}).number(0, 0).value_or(0), 0) << name;
      }
      const Rows readers = once(rw.inspect, {parameter, name});
      ASSERT_EQ(readers.size(), 1U);
      EXPECT_EQ(readers.text(0, 2), other_of(name));
      EXPECT_EQ(readers.number(0, 7), 1);
      EXPECT_TRUE(once(rw.unlock_many, {array({parameter})}).flag(0, 0)) << name;
    }
    const auto s = postgres::advisory_statements("dlock", Durability::async, postgres::AdvisoryKey::KeySpace::bigint);
    EXPECT_EQ(column(connection->ask(s.list.sql, {"1000"})->results().back(), 0), names) << scheme;
  }
}

TEST_F(PostgresHostileTest, ASchemaIsOnlyANameForTheQuestionsAboutIt) {
  for (const std::string& name : names) {
    if (name.size() > 63 || name == "public") continue;
    postgres::Options options;
    options.schema = name;
    for (const auto& [statement, check, params] : postgres::questions_of_doctor(options)) {
      if (params != std::vector<postgres::Parameter>{name}) continue;
      const Rows rows = ask(statement, {name});
      EXPECT_TRUE(rows.empty() || !rows.flag(0, 0)) << check << " of " << name;
    }
  }
}

// A text of libpq's ends at a zero byte: "lock" and "lock\0x" would become one.
TEST_F(PostgresHostileTest, AZeroByteIsNeverSent) {
  const auto s = postgres::table_statements("dlock", Durability::sync);
  const auto answer = connection->ask(s.inspect, {std::string("lock\0x", 6)});
  EXPECT_EQ(answer->outcome().problem, postgres::Problem::not_sent);
  EXPECT_EQ(server.value("SELECT count(*) FROM dlock.lease"), "0");
}

}  // namespace

}  // namespace dlock::test
