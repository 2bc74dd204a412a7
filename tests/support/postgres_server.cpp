#include "tests/support/postgres_server.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "tests/support/pgbouncer.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::test {
namespace {

// This loses data only if the machine itself fails.
constexpr const char* common_lines =
    "listen_addresses = '127.0.0.1'\n"
    "fsync = off\n"
    "full_page_writes = off\n"
    "shared_buffers = 16MB\n"
    "dynamic_shared_memory_type = mmap\n"  // files in the cluster, removed with it
    "wal_level = replica\n"
    "max_wal_senders = 4\n"
    "max_logical_replication_workers = 0\n"  // one process less to start
    "wal_retrieve_retry_interval = 100ms\n"
    "password_encryption = md5\n"
    "lc_messages = 'C'\n"
    "timezone = 'UTC'\n"
    "logging_collector = off\n";

// The server refuses to run as root.
constexpr Account account{"postgres"};

// --- Its processes ---------------------------------------------------------------------------------------------------

// It may have ended meanwhile.
void signal_if_there(pid_t pid, int number) {
  if (::kill(pid, number) != 0 && errno != ESRCH) throw std::system_error(errno, std::generic_category(), "kill");
}

rig::UniqueFd handle_of(pid_t pid) {
  return rig::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool ends_within(const rig::UniqueFd& process, std::chrono::milliseconds limit) {
  pollfd source{.fd = process.get(), .events = POLLIN, .revents = 0};
  return ::poll(&source, 1, static_cast<int>(limit.count())) == 1;
}

// The state in /proc: R, S, T, Z, ... Empty: there is no such process.
std::string state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  (void)std::getline(file, text);
  const auto name_ends = text.rfind(')');
  return name_ends == std::string::npos ? std::string() : text.substr(name_ends + 2, 1);
}

void await_stopped(pid_t pid) {
  const rig::UniqueFd handle = handle_of(pid);
  const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
  for (std::string state = state_of(pid); state != "T" && state != "Z" && !state.empty(); state = state_of(pid)) {
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("hang: a process does not stop");
    if (!handle || ends_within(handle, std::chrono::milliseconds(1))) return;
  }
}

std::vector<pid_t> children_of(pid_t parent) {
  const std::string number = std::to_string(parent);
  std::ifstream file("/proc/" + number + "/task/" + number + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

// Stops a process, then its children, and waits until all are stopped. Then no new child can start.
void freeze_tree(pid_t parent) {
  signal_if_there(parent, SIGSTOP);
  await_stopped(parent);
  for (const pid_t child : children_of(parent)) {
    signal_if_there(child, SIGSTOP);
    await_stopped(child);
  }
}

void thaw_tree(pid_t parent) {
  for (const pid_t child : children_of(parent)) signal_if_there(child, SIGCONT);
  signal_if_there(parent, SIGCONT);
}

// Kills the children and waits until they are gone. The caller waits for the process itself.
void kill_tree(pid_t parent) {
  signal_if_there(parent, SIGSTOP);  // no new ones meanwhile
  await_stopped(parent);
  std::vector<rig::UniqueFd> handles;
  for (const pid_t child : children_of(parent)) {
    handles.push_back(handle_of(child));
    signal_if_there(child, SIGKILL);
  }
  signal_if_there(parent, SIGKILL);
  for (const rig::UniqueFd& handle : handles) {
    if (handle && !ends_within(handle, rig::hang_guard)) throw std::runtime_error("hang: a process does not end");
  }
}

// --- Its files and programs
// --------------------------------------------------------------------------------------------

// One of the server's own programs: in Debian's directory, otherwise in PATH.
std::string postgres_program(const std::string& name) {
  const std::string path = "/usr/lib/postgresql/15/bin/" + name;
  return std::filesystem::exists(path) ? path : name;
}

// The files of a server that was never started. Creating them takes seconds, so a program does that at most once, and
// then copies them.
class Template {
 public:
  Template() {
    account.give(directory_.path());
    (void)rig::run_command(
        account.command({postgres_program("initdb"), "--pgdata=" + cluster(), "--username=postgres", "--auth=trust",
                         "--encoding=UTF8", "--locale=C.UTF-8", "--wal-segsize=1", "--no-sync"}));
    const std::string script = directory_.path() + "/script";
    const std::string database = PostgresServer::database;
    const std::string user = PostgresServer::user;
    // Fewer databases are copied faster: initdb's own one becomes the user's.
    account.write_file(script, "CREATE ROLE " + user + " LOGIN PASSWORD '" + PostgresServer::password + "'\n" +
                                   "ALTER DATABASE postgres RENAME TO " + database + "\n" + "ALTER DATABASE " +
                                   database + " OWNER TO " + user + "\n" +
                                   "UPDATE pg_database SET datistemplate = false WHERE datname = 'template0'\n" +
                                   "DROP DATABASE template0\n");
    // One process, without a port; it reads a statement from each line.
    (void)rig::run_command(
        account.command({"sh", "-c", R"(exec "$0" --single -F -c password_encryption=md5 -D "$1" template1 < "$2")",
                         postgres_program("postgres"), cluster(), script}));
  }
  [[nodiscard]] std::string cluster() const { return directory_.path() + "/data"; }

 private:
  rig::ScratchDirectory directory_;
};

// For a server that was killed and will not be started again: releases what the kernel keeps for it.
void forget_shared_memory(const std::string& data) {
  // The seventh line: key and id of the segment by which a second server detects the first one.
  std::ifstream file(data + "/postmaster.pid");
  std::string line;
  constexpr int lines_before = 6;
  for (int i = 0; i < lines_before; ++i) (void)std::getline(file, line);
  unsigned long key = 0;
  int id = -1;
  if (file >> key >> id) (void)::shmctl(id, IPC_RMID, nullptr);  // it may be gone
}

}  // namespace

// SIGINT is its fast shutdown, which ends all sessions.
PostgresServer::PostgresServer(PostgresConfig config)
    : UnprivilegedServer(account, "PostgreSQL", certificate_if(config.tls, config.tls_names), SIGINT),
      config_(std::move(config)) {
  if (config_.tls) copy_certificate();
  if (config_.primary != nullptr) {
    copy_primary();
  } else {
    static const Template made;
    copy_data(made.cluster());
  }
  start_on_free_ports();
  if (config_.tls) run(std::string("ALTER ROLE ") + user + " PASSWORD '" + password + "'");
}

PostgresServer::~PostgresServer() {
  disconnect();
  try {
    if (running()) kill();
    forget_shared_memory(data());
  } catch (const std::exception&) {
    // the process's own destructor kills what it can
  }
}

// --- Its files -------------------------------------------------------------------------------------------------------

void PostgresServer::copy_primary() const {
  (void)rig::run_command(account.command(
      {postgres_program("pg_basebackup"), "--pgdata=" + data(), "--host=" + config_.primary->socket_directory(),
       "--port=" + std::to_string(config_.primary->port()), "--username=postgres", "--checkpoint=fast",
       "--wal-method=stream", "--write-recovery-conf", "--no-sync"}));
}

std::vector<std::string> PostgresServer::configure() {
  std::string text = common_lines;
  text += "port = " + std::to_string(port()) + "\nunix_socket_directories = '" + directory() +
          "'\nmax_connections = " + std::to_string(config_.max_connections) + "\n";
  if (config_.tls) {
    text += "password_encryption = scram-sha-256\nssl = on\nssl_cert_file = '" + directory() +
            "/server.crt'\nssl_key_file = '" + directory() + "/server.key'\n";
  }
  for (const std::string& line : config_.lines) text += line + "\n";
  account.write_file(data() + "/postgresql.conf", text);
  // The password is stored for "md5": for SCRAM only in tests of encryption, because its thousands of hashes for each
  // connection would dominate the time of all other tests.
  const std::string host = config_.tls && !config_.plain_too ? "hostssl" : "host";
  account.write_file(data() + "/pg_hba.conf",
                     "local all postgres trust\nlocal replication postgres trust\nlocal all all md5\n" + host +
                         " all postgres all reject\n" + host + " all all 127.0.0.1/32 md5\n");
  return account.command({"env", "LD_PRELOAD=" + quick_exit(), postgres_program("postgres"), "-D", data()});
}

// A copy that the server can read, whatever its user.
std::string PostgresServer::quick_exit() const {
  const std::string path = directory() + "/quick_exit.so";
  if (!std::filesystem::exists(path)) {
    std::filesystem::copy_file(DLOCK_QUICK_EXIT, path);
    account.give(path);
  }
  return path;
}

// --- Its life --------------------------------------------------------------------------------------------------------

// "... connections", or "... read-only connections" of a standby.
bool PostgresServer::serves() const {
  return has_printed("database system is ready to accept ");
}

void PostgresServer::kill() {
  disconnect();
  kill_tree(process().pid());
  Server::kill();
}

void PostgresServer::freeze() const {
  freeze_tree(process().pid());
}

void PostgresServer::thaw() const {
  thaw_tree(process().pid());
}

// --- From inside -----------------------------------------------------------------------------------------------------

std::string PostgresServer::url_of(const std::string& addresses, const std::string& parameters) const {
  return with_parameters(
      std::string("postgresql://") + user + ":" + password + "@" + addresses + "/" + database,
      {config_.tls ? "sslmode=verify-full&sslrootcert=" + certificate().authority() : "", parameters});
}

std::string PostgresServer::admin_conninfo(const std::string& dbname) const {
  return "host=" + directory() + " port=" + std::to_string(port()) + " user=postgres dbname=" + dbname;
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
  // The server waits between two checks.
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

// --- A pooler in front of it
// -------------------------------------------------------------------------------------------

std::vector<std::string> PgBouncer::configure() {
  const std::string database = PostgresServer::database;
  const std::string file = directory() + "/pgbouncer.ini";
  const std::string users_file = directory() + "/users.txt";
  account.give(directory());
  std::string users = std::string("\"") + PostgresServer::user + "\" \"" + PostgresServer::password + "\"\n";
  for (const std::string& role : config_.roles) users += "\"" + role + "\" \"" + role + "\"\n";
  account.write_file(users_file, users);
  std::string text =
      "[databases]\n" + database + " = host=127.0.0.1 port=" + std::to_string(server_.port()) + " dbname=" + database +
      "\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = " + std::to_string(port()) +
      "\nunix_socket_dir =\nauth_type = md5\nauth_file = " + users_file + "\npool_mode = " + config_.pool_mode +
      "\ndefault_pool_size = " + std::to_string(config_.pool_size) + "\nmax_client_conn = 200\n";
  for (const std::string& line : config_.lines) text += line + "\n";
  account.write_file(file, text);
  return account.command({"/usr/sbin/pgbouncer", file});
}

}  // namespace dlock::test
