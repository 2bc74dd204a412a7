#include "tests/support/postgres_server.hpp"

#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "tests/support/free_port.hpp"
#include "tests/support/postgres_cluster.hpp"
#include "tests/support/process_tree.hpp"
#include "tests/support/unprivileged.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::test {

namespace {

constexpr int start_attempts = 10;
// Nothing is lost by it unless the machine itself fails.
constexpr const char* common_lines =
    "listen_addresses = '127.0.0.1'\n"
    "fsync = off\n"
    "full_page_writes = off\n"
    "shared_buffers = 16MB\n"
    "dynamic_shared_memory_type = mmap\n"  // files in the cluster, that go with it
    "wal_level = replica\n"
    "max_wal_senders = 4\n"
    "max_logical_replication_workers = 0\n"  // a process less to start
    "wal_retrieve_retry_interval = 100ms\n"
    "password_encryption = md5\n"
    "lc_messages = 'C'\n"
    "timezone = 'UTC'\n"
    "logging_collector = off\n";

}  // namespace

PostgresServer::PostgresServer(PostgresConfig config) : config_(std::move(config)) {
  give_away(directory_.path());
  if (config_.tls) {
    certificate_.emplace(config_.tls_names);
    copy_certificate();
  }
  if (config_.primary != nullptr) {
    copy_primary();
  } else {
    make_cluster(data(), {.name = user, .password = password, .database = database});
  }
  for (int i = 0; i < start_attempts; ++i) {
    port_ = free_port();
    if (!try_to_start()) continue;
    if (config_.tls) run(std::string("ALTER ROLE ") + user + " PASSWORD '" + password + "'");
    return;
  }
  throw std::runtime_error("PostgreSQL does not start\n" + process_->output());
}

void PostgresServer::copy_certificate() const {
  for (const auto& [from, to] :
       {std::pair{certificate_->certificate(), "/server.crt"}, std::pair{certificate_->key(), "/server.key"}}) {
    const std::string path = directory_.path() + to;
    std::filesystem::copy_file(from, path, std::filesystem::copy_options::overwrite_existing);
    rig::require(::chmod(path.c_str(), S_IRUSR | S_IWUSR), "chmod");
    give_away(path);
  }
}

PostgresServer::~PostgresServer() {
  admin_.reset();
  try {
    if (process_ && process_->running()) kill();
    forget_shared_memory(data());
  } catch (const std::exception&) {
    // The process's own destructor kills what it can.
  }
}

// --- Its files -------------------------------------------------------------------------------------------------------

void PostgresServer::copy_primary() const {
  (void)rig::run_command(unprivileged(
      {postgres_program("pg_basebackup"), "--pgdata=" + data(), "--host=" + config_.primary->socket_directory(),
       "--port=" + std::to_string(config_.primary->port()), "--username=postgres", "--checkpoint=fast",
       "--wal-method=stream", "--write-recovery-conf", "--no-sync"}));
}

void PostgresServer::write(const std::string& path, const std::string& text) const {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
  file.close();
  give_away(path);
}

void PostgresServer::write_configuration() const {
  std::string text = common_lines;
  text += "port = " + std::to_string(port_) + "\nunix_socket_directories = '" + directory_.path() +
          "'\nmax_connections = " + std::to_string(config_.max_connections) + "\n";
  if (config_.tls) {
    text += "password_encryption = scram-sha-256\nssl = on\nssl_cert_file = '" + directory_.path() +
            "/server.crt'\nssl_key_file = '" + directory_.path() + "/server.key'\n";
  }
  for (const std::string& line : config_.lines) text += line + "\n";
  write(data() + "/postgresql.conf", text);
  // "md5" is what the password is stored for: SCRAM where encryption is the subject, whose thousands of hashes for each
  // connection would be most of what the other tests do.
  const std::string host = config_.tls && !config_.plain_too ? "hostssl" : "host";
  write(data() + "/pg_hba.conf", "local all postgres trust\nlocal replication postgres trust\nlocal all all md5\n" +
                                     host + " all postgres all reject\n" + host + " all all 127.0.0.1/32 md5\n");
}

// --- Its life --------------------------------------------------------------------------------------------------------

// A copy that the server may read, whoever it runs as.
std::string PostgresServer::quick_exit() const {
  const std::string path = directory_.path() + "/quick_exit.so";
  if (!std::filesystem::exists(path)) {
    std::filesystem::copy_file(DLOCK_QUICK_EXIT, path);
    give_away(path);
  }
  return path;
}

bool PostgresServer::try_to_start() {
  write_configuration();
  process_ = std::make_unique<rig::ChildProcess>(
      unprivileged({"env", "LD_PRELOAD=" + quick_exit(), postgres_program("postgres"), "-D", data()}));
  // "... connections", or "... read-only connections" of a standby.
  return process_->wait_for_output("database system is ready to accept ");
}

void PostgresServer::start() {
  if (!try_to_start()) throw std::runtime_error("PostgreSQL does not start again\n" + process_->output());
}

void PostgresServer::stop() {
  admin_.reset();
  process_->signal(SIGINT);
  if (const int status = process_->wait(); status != 0) {
    throw std::runtime_error("PostgreSQL ended with status " + std::to_string(status) + "\n" + process_->output());
  }
}

void PostgresServer::kill() {
  admin_.reset();
  kill_tree(process_->pid());
  (void)process_->wait();
}

void PostgresServer::freeze() const {
  freeze_tree(process_->pid());
}

void PostgresServer::thaw() const {
  thaw_tree(process_->pid());
}

// --- From inside -----------------------------------------------------------------------------------------------------

std::string PostgresServer::url_at(std::uint16_t port, const std::string& parameters) const {
  std::string url =
      std::string("postgresql://") + user + ":" + password + "@127.0.0.1:" + std::to_string(port) + "/" + database;
  std::string all = config_.tls ? "sslmode=verify-full&sslrootcert=" + certificate_->authority() : "";
  if (!all.empty() && !parameters.empty()) all += "&";
  all += parameters;
  return all.empty() ? url : url + "?" + all;
}

std::string PostgresServer::url_as(const std::string& role, const std::string& secret,
                                   const std::string& parameters) const {
  const std::string whole = url(parameters);
  return "postgresql://" + role + ":" + secret + whole.substr(whole.find('@'));
}

std::string PostgresServer::admin_conninfo(const std::string& dbname) const {
  return "host=" + directory_.path() + " port=" + std::to_string(port_) + " user=postgres dbname=" + dbname;
}

PostgresConnection& PostgresServer::admin() {
  if (!admin_) admin_.emplace(admin_conninfo());
  return *admin_;
}

int PostgresServer::terminate_clients() {
  return std::stoi(value(std::string("SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity") +
                         " WHERE usename = '" + user + "'"));
}

void PostgresServer::await(const std::string& condition) {
  const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
  // The server does the waiting between two looks.
  while (value("SELECT pg_sleep(0.01) IS NULL OR (" + condition + ")") != "t") {
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("hang: " + condition);
  }
}

void PostgresServer::await_standby() {
  await("EXISTS (SELECT FROM pg_stat_replication WHERE replay_lsn >= '" + value("SELECT pg_current_wal_lsn()") + "')");
}

void PostgresServer::promote() {
  if (value("SELECT pg_promote(true, 60)") != "t") throw std::runtime_error("the standby is not promoted");
}

}  // namespace dlock::test
