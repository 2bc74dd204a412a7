#include "bench/targets/postgres/floor_statements.hpp"

#include <utility>

namespace dlock::bench {

namespace {

// The table's name stands for every "{}" in the text, and for "{now}", "{us}" and "{commit}" what is below. Blanks do
// not matter.
std::string filled(std::string_view text, const std::string& table) {
  struct Filling {
    std::string_view word;
    std::string_view by;
  };
  const Filling fillings[] = {
      {"{}", table},
      {"{now}", "pg_catalog.clock_timestamp()"},
      {"{us}", "(extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint"},
      // A server that does not wait for the disk does for a lock.
      {"{commit}",
       ", CASE WHEN pg_catalog.current_setting('synchronous_commit') = 'off' "
       "THEN pg_catalog.set_config('synchronous_commit', 'on', true) END"},
  };
  std::string out(text);
  for (const Filling& each : fillings) {
    for (std::size_t at = out.find(each.word); at != std::string::npos; at = out.find(each.word, at + each.by.size())) {
      out.replace(at, each.word.size(), each.by);
    }
  }
  return out;
}

std::string qualified(std::string_view schema, std::string_view table) {
  return quoted_identifier(schema) + "." + quoted_identifier(table);
}

constexpr std::string_view table_acquire = R"sql(
  WITH f AS MATERIALIZED (
    SELECT name FROM {} WHERE name = $1::text AND (expires_at <= {now} OR owner = $2::text)
    FOR NO KEY UPDATE SKIP LOCKED),
  u AS (
    UPDATE {} SET owner = $2::text, holder = $3::text, expires_at = {now} + $4::bigint * interval '1 millisecond',
      token = CASE WHEN owner = $2::text THEN token ELSE greatest(token + 1, {us}) END
    WHERE name = (SELECT f.name FROM f) AND (expires_at <= {now} OR owner = $2::text)
    RETURNING token{commit}),
  i AS (
    INSERT INTO {} (name, owner, holder, token, expires_at)
    SELECT $1::text, $2::text, $3::text, {us}, {now} + $4::bigint * interval '1 millisecond'
    WHERE NOT EXISTS (SELECT FROM {} WHERE name = $1::text)
    ON CONFLICT (name) DO NOTHING RETURNING token{commit})
  SELECT $2::text, token, NULL::text, NULL::bigint, NULL::bigint FROM u
  UNION ALL SELECT $2::text, token, NULL::text, NULL::bigint, NULL::bigint FROM i
  UNION ALL SELECT $2::text, NULL::bigint, NULL::text, NULL::bigint,
      (extract(epoch FROM expires_at - {now}) * 1000)::bigint
    FROM {}
    WHERE name = $1::text AND expires_at > {now} AND pg_catalog.isfinite(expires_at)
      AND owner IS DISTINCT FROM $2::text AND NOT EXISTS (SELECT FROM u)
)sql";

constexpr std::string_view table_release = R"sql(
  WITH f AS MATERIALIZED (
    SELECT name FROM {} WHERE name = $1::text AND owner = $2::text FOR NO KEY UPDATE SKIP LOCKED),
  r AS (
    UPDATE {} SET owner = NULL, expires_at = '-infinity'
    WHERE name = (SELECT f.name FROM f) AND owner = $2::text
    RETURNING name, waiting_until{commit})
  SELECT $2::text, true, CASE WHEN waiting_until > {now} THEN pg_catalog.pg_notify($3::text, name)::text END FROM r
  UNION ALL SELECT owner, false, NULL::text FROM {}
    WHERE name = $1::text AND owner = $2::text AND NOT EXISTS (SELECT FROM r)
)sql";

constexpr std::string_view optimistic_acquire = R"sql(
  WITH f AS MATERIALIZED (
    SELECT name FROM {}
    WHERE name = $1::text
      AND (owner IS NULL OR owner = $2::text OR (owner = $5::text AND version = $6::bigint))
    FOR NO KEY UPDATE SKIP LOCKED),
  u AS (
    UPDATE {} SET owner = $2::text, holder = $3::text, lease_ms = $4::bigint, version = version + 1,
      token = CASE WHEN owner = $2::text THEN token ELSE greatest(token + 1, {us}) END
    WHERE name = (SELECT f.name FROM f)
      AND (owner IS NULL OR owner = $2::text OR (owner = $5::text AND version = $6::bigint))
    RETURNING token{commit}),
  i AS (
    INSERT INTO {} (name, owner, holder, version, token, lease_ms)
    SELECT $1::text, $2::text, $3::text, 1, {us}, $4::bigint
    WHERE NOT EXISTS (SELECT FROM {} WHERE name = $1::text)
    ON CONFLICT (name) DO NOTHING RETURNING token{commit})
  SELECT $2::text, token, NULL::text, NULL::bigint, NULL::bigint FROM u
  UNION ALL SELECT $2::text, token, NULL::text, NULL::bigint, NULL::bigint FROM i
  UNION ALL SELECT $2::text, NULL::bigint, owner, version, lease_ms FROM {}
    WHERE name = $1::text AND owner <> $2::text AND NOT EXISTS (SELECT FROM u)
)sql";

constexpr std::string_view optimistic_release = R"sql(
  WITH f AS MATERIALIZED (
    SELECT name FROM {} WHERE name = $1::text AND owner = $2::text FOR NO KEY UPDATE SKIP LOCKED),
  r AS (
    UPDATE {} SET owner = NULL, version = version + 1
    WHERE name = (SELECT f.name FROM f) AND owner = $2::text
    RETURNING name, waiting_until{commit})
  SELECT $2::text, true, CASE WHEN waiting_until > {now} THEN pg_catalog.pg_notify($3::text, name)::text END FROM r
  UNION ALL SELECT owner, false, NULL::text FROM {}
    WHERE name = $1::text AND owner = $2::text AND NOT EXISTS (SELECT FROM r)
)sql";

constexpr std::string_view advisory_acquire = R"sql(
  WITH a AS MATERIALIZED (SELECT pg_catalog.pg_try_advisory_lock($1::bigint) AS ok)
  INSERT INTO {} AS f (name, key, space, pid, holder, token)
  SELECT $2::text, $1::bigint, 1, pg_catalog.pg_backend_pid(), $3::text, {us} FROM a WHERE a.ok
  ON CONFLICT (name) DO UPDATE SET key = $1::bigint, space = 1, pid = pg_catalog.pg_backend_pid(),
    holder = $3::text, token = greatest(f.token + 1, {us})
  RETURNING f.token, pg_catalog.pg_backend_pid(){commit}
)sql";

// The first table is that of the locks, the second that of the tokens.
constexpr std::string_view for_update_try_lock = R"sql(
  WITH l AS MATERIALIZED (SELECT name FROM {} WHERE name = $1::text FOR UPDATE NOWAIT)
  INSERT INTO {token} AS t (name, token, holder) SELECT l.name, {us}, $2::text FROM l
  ON CONFLICT (name) DO UPDATE SET token = greatest(t.token + 1, {us}), holder = $2::text
  RETURNING t.token,
    pg_catalog.set_config('application_name', 'dlock#' || t.token || ':' || $2::text, true){commit}
)sql";

}  // namespace

std::string quoted_identifier(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

LockStatements table_floor_statements(std::string_view schema) {
  const std::string table = qualified(schema, "lease");
  return {.acquire = filled(table_acquire, table), .release = filled(table_release, table)};
}

LockStatements optimistic_floor_statements(std::string_view schema) {
  const std::string table = qualified(schema, "optimistic");
  return {.acquire = filled(optimistic_acquire, table), .release = filled(optimistic_release, table)};
}

LockStatements advisory_floor_statements(std::string_view schema) {
  return {.acquire = filled(advisory_acquire, qualified(schema, "fence")),
          .release = "SELECT pg_catalog.pg_advisory_unlock($1::bigint)"};
}

ForUpdateFloorStatements for_update_floor_statements(std::string_view schema) {
  const std::string locks = qualified(schema, "row_lock");
  std::string try_lock = filled(for_update_try_lock, locks);
  constexpr std::string_view tokens = "{token}";
  try_lock.replace(try_lock.find(tokens), tokens.size(), qualified(schema, "row_token"));
  return {.ensure = filled("INSERT INTO {} (name) VALUES ($1::text) ON CONFLICT (name) DO NOTHING", locks),
          .begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
          .try_lock = std::move(try_lock),
          .commit = "COMMIT"};
}

}  // namespace dlock::bench
