// A floor that says something else than dlock does would measure something else.
#include "bench/targets/postgres/floor_statements.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "backends/postgres/statements.hpp"

namespace dlock::bench {
namespace {

constexpr const char* schema = "a \"schema\"";

std::string words(const std::string& sql) {
  std::istringstream in(sql);
  std::string out;
  for (std::string word; in >> word;) out += (out.empty() ? "" : " ") + word;
  return out;
}

TEST(BenchFloorStatements, OfTableAreDlocks) {
  const auto theirs = postgres::table_statements(schema, postgres::Durability::sync);
  const LockStatements ours = table_floor_statements(schema);
  EXPECT_EQ(words(ours.acquire), words(theirs.acquire.sql));
  EXPECT_EQ(words(ours.release), words(theirs.release.sql));
}

TEST(BenchFloorStatements, OfOptimisticAreDlocks) {
  const auto theirs = postgres::optimistic_statements(schema, postgres::Durability::sync);
  const LockStatements ours = optimistic_floor_statements(schema);
  EXPECT_EQ(words(ours.acquire), words(theirs.acquire.sql));
  EXPECT_EQ(words(ours.release), words(theirs.release.sql));
}

TEST(BenchFloorStatements, OfForUpdateAreDlocks) {
  const auto theirs = postgres::for_update_statements(schema, postgres::Durability::sync);
  const ForUpdateFloorStatements ours = for_update_floor_statements(schema);
  EXPECT_EQ(words(ours.ensure), words(theirs.ensure.sql));
  EXPECT_EQ(words(ours.begin), words(theirs.begin.sql));
  EXPECT_EQ(words(ours.try_lock), words(theirs.try_lock.sql));
  EXPECT_EQ(words(ours.commit), words(theirs.commit.sql));
}

TEST(BenchFloorStatements, OfAdvisoryAreDlocks) {
  const auto theirs =
      postgres::advisory_statements(schema, postgres::Durability::sync, postgres::AdvisoryKey::Space::bigint);
  const LockStatements ours = advisory_floor_statements(schema);
  EXPECT_EQ(words(ours.acquire), words(theirs.try_lock.sql));
  EXPECT_EQ(words(ours.release), words(theirs.unlock.sql));
}

}  // namespace
}  // namespace dlock::bench
