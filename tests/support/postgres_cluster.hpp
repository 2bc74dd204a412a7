// The files of a PostgreSQL server, before anybody runs it.
#pragma once

#include <string>

namespace dlock::test {

// One of the server's own programs: initdb, postgres, pg_basebackup.
[[nodiscard]] std::string postgres_program(const std::string& name);

// What every cluster has from the beginning.
struct PreparedRole {
  const char* name;
  const char* password;
  const char* database;  // that belongs to it
};

// Makes a new cluster in a directory that does not exist yet. To create one takes seconds, so that a program creates
// one at most and copies it from then on. Throws std::runtime_error with what was printed if that fails.
void make_cluster(const std::string& directory, const PreparedRole& role);

// Where a server was killed and is not going to be started again: gives back what the kernel keeps for it.
void forget_shared_memory(const std::string& directory);

}  // namespace dlock::test
