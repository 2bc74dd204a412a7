#include "tests/support/mysql_server.hpp"

#include <mysql.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "torture/rig/hang_guard.hpp"

namespace dlock::test {
namespace {

// The server refuses to run as root: if the tests do, it runs as this user.
constexpr Account account{"nobody"};

// Options for making the data directory, and options that only save time.
const std::vector<std::string> common_options = {"--innodb-log-file-size=4M", "--innodb-flush-method=nosync",
                                                 "--skip-name-resolve"};

std::string value_of(MYSQL& connection, const std::string& sql) {
  const auto fail = [&] { throw std::runtime_error(sql + ": " + mysql_error(&connection)); };
  if (mysql_real_query(&connection, sql.data(), sql.size()) != 0) fail();
  MYSQL_RES* const result = mysql_store_result(&connection);
  if (result == nullptr && mysql_field_count(&connection) != 0) fail();
  if (result == nullptr) return {};
  const MYSQL_ROW row = mysql_fetch_row(result);
  std::string text = row != nullptr && row[0] != nullptr ? row[0] : "";
  mysql_free_result(result);
  return text;
}

// The files of a server that was never started: a program makes them once, and then copies them.
class Template {
 public:
  Template() {
    account.give(directory_.path());
    // In a shared directory for temporary tables, a starting server would remove those of others.
    std::vector<std::string> command = {"mariadb-install-db",
                                        "--no-defaults",
                                        "--basedir=/usr",
                                        "--datadir=" + data(),
                                        "--tmpdir=" + directory_.path(),
                                        "--auth-root-authentication-method=normal",
                                        "--skip-test-db"};
    command.insert(command.end(), common_options.begin(), common_options.end());
    (void)rig::run_command(account.command(std::move(command)));
  }
  [[nodiscard]] std::string data() const { return directory_.path() + "/data"; }

 private:
  rig::ScratchDirectory directory_;
};

}  // namespace

MysqlServer::MysqlServer(MysqlConfig config)
    : UnprivilegedServer(account, "MariaDB", certificate_if(config.tls, config.tls_names)), config_(std::move(config)) {
  if (config_.tls) copy_certificate();
  static const Template made;
  copy_data(made.data());
  // Executed at each start, before the port is open.
  const std::string script = directory() + "/init.sql";
  const std::string locker = std::string("'") + user + "'@'127.0.0.1'";
  account.write_file(script, std::string("SET sql_log_bin = 0;\nCREATE DATABASE IF NOT EXISTS ") + database +
                                 ";\nCREATE USER IF NOT EXISTS " + locker + " IDENTIFIED BY '" + password +
                                 "';\nGRANT ALL ON " + database + ".* TO " + locker + ";\nGRANT ALL ON dlock.* TO " +
                                 locker +
                                 ";\nDELETE FROM mysql.global_priv WHERE User = 'root' AND Host <> 'localhost';\n"
                                 "FLUSH PRIVILEGES;\n");
  start_on_free_ports();
}

MysqlServer::MysqlServer(MysqlConfig config, const std::string& data)
    : UnprivilegedServer(account, "MariaDB"), config_(std::move(config)) {
  copy_data(data);
}

std::vector<std::string> MysqlServer::configure() {
  std::vector<std::string> command = {"mariadbd",
                                      "--no-defaults",
                                      "--datadir=" + data(),
                                      "--tmpdir=" + directory(),
                                      "--socket=" + directory() + "/socket",
                                      "--pid-file=" + directory() + "/pid",
                                      "--bind-address=127.0.0.1",
                                      "--port=" + std::to_string(port()),
                                      "--innodb-buffer-pool-size=16M",
                                      "--innodb-flush-log-at-trx-commit=0",
                                      "--thread-cache-size=16"};
  command.insert(command.end(), common_options.begin(), common_options.end());
  const std::string script = directory() + "/init.sql";
  if (std::filesystem::exists(script)) command.push_back("--init-file=" + script);
  if (config_.tls) {
    for (const std::string option : {"cert", "key"}) {
      command.push_back("--ssl-" + option + "=" + directory() + "/server." + (option == "cert" ? "crt" : "key"));
    }
    if (!config_.plain_too) command.push_back("--require-secure-transport=ON");
  }
  command.insert(command.end(), config_.options.begin(), config_.options.end());
  return account.command(std::move(command));
}

std::string MysqlServer::url_of(const std::string& addresses, const std::string& parameters) const {
  return with_parameters(std::string("mysql://") + user + ":" + password + "@" + addresses + "/" + database,
                         {config_.tls ? "tls_ca=" + certificate().authority() : "", parameters});
}

// --- From inside -----------------------------------------------------------------------------------------------------

void MysqlServer::Close::operator()(st_mysql* connection) const noexcept {
  mysql_close(connection);
}

MysqlServer::Connection MysqlServer::connect_as_root(unsigned answer_limit) const {
  Connection connection(mysql_init(nullptr));
  constexpr unsigned limit = 1;  // seconds: a frozen server accepts connections, but does not answer
  (void)mysql_options(connection.get(), MYSQL_OPT_CONNECT_TIMEOUT, &limit);
  (void)mysql_options(connection.get(), MYSQL_OPT_READ_TIMEOUT, &answer_limit);
  const std::string socket = directory() + "/socket";
  if (mysql_real_connect(connection.get(), nullptr, "root", nullptr, nullptr, 0, socket.c_str(), 0) == nullptr)
    return {};
  return connection;
}

bool MysqlServer::serves() const {
  return connect_as_root() != nullptr;
}

std::string MysqlServer::value(const std::string& sql) {
  if (!admin_) admin_ = connect_as_root();
  if (!admin_) throw std::runtime_error("MariaDB does not answer");
  return value_of(*admin_, sql);
}

std::string MysqlServer::answer(const std::string& sql) const {
  const Connection connection = connect_as_root(1);
  try {
    return connection ? value_of(*connection, sql) : "";
  } catch (const std::runtime_error&) {
    return {};
  }
}

void MysqlServer::await(const std::string& condition) {
  const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
  // The server waits between two checks.
  while (value("SELECT SLEEP(0.01) + (" + condition + ")") != "1") {
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("hang: " + condition);
  }
}

}  // namespace dlock::test
