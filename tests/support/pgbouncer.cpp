#include "tests/support/pgbouncer.hpp"

#include "tests/support/unprivileged.hpp"

namespace dlock::test {

std::vector<std::string> PgBouncer::configure() {
  const std::string database = PostgresServer::database;
  const std::string file = directory() + "/pgbouncer.ini";
  const std::string users_file = directory() + "/users.txt";
  give_away(directory());
  std::string users = std::string("\"") + PostgresServer::user + "\" \"" + PostgresServer::password + "\"\n";
  for (const std::string& role : config_.roles) users += "\"" + role + "\" \"" + role + "\"\n";
  write_and_give_away(users_file, users);
  std::string text =
      "[databases]\n" + database + " = host=127.0.0.1 port=" + std::to_string(server_.port()) + " dbname=" + database +
      "\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = " + std::to_string(port()) +
      "\nunix_socket_dir =\nauth_type = md5\nauth_file = " + users_file + "\npool_mode = " + config_.pool_mode +
      "\ndefault_pool_size = " + std::to_string(config_.pool_size) + "\nmax_client_conn = 200\n";
  for (const std::string& line : config_.lines) text += line + "\n";
  write_and_give_away(file, text);
  return unprivileged({"/usr/sbin/pgbouncer", file});
}

}  // namespace dlock::test
