#include "tests/support/pgbouncer.hpp"

#include <fstream>
#include <stdexcept>
#include <utility>

#include "tests/support/free_port.hpp"
#include "tests/support/unprivileged.hpp"

namespace dlock::test {

namespace {

constexpr int start_attempts = 10;

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
  file.close();
  give_away(path);
}

}  // namespace

PgBouncer::PgBouncer(const PostgresServer& server, PgBouncerConfig config) : config_(std::move(config)) {
  give_away(directory_.path());
  for (int i = 0; i < start_attempts; ++i) {
    port_ = free_port();
    write_configuration(server);
    process_ = std::make_unique<rig::ChildProcess>(
        unprivileged({"/usr/sbin/pgbouncer", directory_.path() + "/pgbouncer.ini"}));
    if (process_->wait_for_output("process up: ")) return;
  }
  throw std::runtime_error("pgbouncer does not start\n" + process_->output());
}

void PgBouncer::write_configuration(const PostgresServer& server) const {
  std::string users = std::string("\"") + PostgresServer::user + "\" \"" + PostgresServer::password + "\"\n";
  for (const std::string& role : config_.roles) users += "\"" + role + "\" \"" + role + "\"\n";
  write(directory_.path() + "/users.txt", users);
  std::string more;
  for (const std::string& line : config_.lines) more += line + "\n";
  write(directory_.path() + "/pgbouncer.ini",
        std::string("[databases]\n") + PostgresServer::database + " = host=127.0.0.1 port=" +
            std::to_string(server.port()) + " dbname=" + PostgresServer::database + "\n[pgbouncer]\n" +
            "listen_addr = 127.0.0.1\nlisten_port = " + std::to_string(port_) + "\nunix_socket_dir =\n" +
            "auth_type = md5\nauth_file = " + directory_.path() + "/users.txt\npool_mode = " + config_.pool_mode +
            "\ndefault_pool_size = " + std::to_string(config_.pool_size) + "\nmax_client_conn = 200\n" + more);
}

}  // namespace dlock::test
