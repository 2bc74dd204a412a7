#include "tests/support/redis_server.hpp"

#include <csignal>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "tests/support/free_port.hpp"

namespace dlock::test {

namespace {

constexpr int start_attempts = 10;

void expect_ok(const RedisReply& reply, const std::string& what) {
  if (reply.is_error()) throw std::runtime_error(what + ": " + reply.text);
}

}  // namespace

std::vector<std::string> RedisUser::redis_rights() {
  return {"+set",       "+get",         "+del",   "+pexpire",        "+pttl", "+time",    "+zadd",
          "+zrem",      "+zrange",      "+zrank", "+zscore",         "+eval", "+evalsha", "+publish",
          "+subscribe", "+unsubscribe", "+ping",  "+client|setname", "+role"};
}

std::vector<std::string> RedisUser::sharing_rights() {
  return {"+hset", "+hget", "+hdel"};
}

RedisUser RedisUser::of_all_kinds() {
  RedisUser user;
  for (std::string& right : sharing_rights()) user.rights.push_back(std::move(right));
  user.patterns.insert(user.patterns.end(), {"~dlock.*", "~{dlock.*"});
  return user;
}

std::vector<std::string> RedisUser::rules() const {
  std::vector<std::string> words = {name, "on", ">" + password, "resetkeys", "resetchannels", "-@all"};
  words.insert(words.end(), patterns.begin(), patterns.end());
  words.insert(words.end(), rights.begin(), rights.end());
  return words;
}

RedisServer::RedisServer(RedisConfig config) : config_(std::move(config)) {
  certificate_ = config_.certificate;
  if (config_.tls && !certificate_) certificate_ = std::make_shared<ThrowawayCertificate>(config_.tls_names);
  for (int i = 0; i < start_attempts; ++i) {
    port_ = free_port();
    if (try_to_start()) return;
  }
  throw std::runtime_error("redis-server does not start\n" + process_->output());
}

std::string RedisServer::url_at(std::uint16_t port, const std::string& parameters) const {
  std::string url = config_.tls ? "rediss://" : "redis://";
  if (config_.user) {
    url += config_.user->name + ":" + config_.user->password + "@";
  } else if (!config_.password.empty()) {
    url += ":" + config_.password + "@";
  }
  url += "127.0.0.1:" + std::to_string(port);
  std::string all = config_.tls ? "tls_ca=" + certificate_->authority() : "";
  if (!all.empty() && !parameters.empty()) all += "&";
  all += parameters;
  return all.empty() ? url : url + "?" + all;
}

void RedisServer::write_configuration() const {
  std::ofstream file(directory_.path() + "/redis.conf");
  file << "bind 127.0.0.1\ndaemonize no\nlogfile \"\"\nsave \"\"\n"
       << "dir " << directory_.path() << "\nunixsocket " << socket_path() << "\n"
       << "repl-diskless-sync-delay 0\nappendonly " << (config_.append_only ? "yes" : "no") << "\n";
  if (config_.tls) {
    file << "port 0\ntls-port " << port_ << "\ntls-auth-clients no\ntls-ca-cert-file " << certificate_->authority()
         << "\ntls-cert-file " << certificate_->certificate() << "\ntls-key-file " << certificate_->key() << "\n";
  } else {
    file << "port " << port_ << "\n";
  }
  if (!config_.password.empty()) file << "requirepass " << config_.password << "\n";
  if (config_.primary) file << "replicaof 127.0.0.1 " << *config_.primary << "\n";
  if (config_.user) {
    file << "user";
    for (const std::string& word : config_.user->rules()) file << " " << word;
    file << "\n";
  }
  for (const std::string& line : config_.lines) file << line << "\n";
  if (!file.flush()) throw std::runtime_error("cannot write " + directory_.path() + "/redis.conf");
}

bool RedisServer::try_to_start() {
  write_configuration();
  process_ =
      std::make_unique<rig::ChildProcess>(std::vector<std::string>{"redis-server", directory_.path() + "/redis.conf"});
  // The last line that it prints before it serves: data is loaded and all sockets listen by then.
  return process_->wait_for_output("ready to accept connections at " + socket_path());
}

void RedisServer::start() {
  if (!try_to_start()) throw std::runtime_error("redis-server does not start again\n" + process_->output());
}

void RedisServer::stop() {
  admin_.reset();
  process_->signal(SIGTERM);
  if (const int status = process_->wait(); status != 0) {
    throw std::runtime_error("redis-server ended with status " + std::to_string(status) + "\n" + process_->output());
  }
}

void RedisServer::kill() {
  admin_.reset();
  process_->signal(SIGKILL);
  (void)process_->wait();
}

RedisConnection RedisServer::connect() const {
  RedisConnection connection(rig::Endpoint::unix_socket(socket_path()));
  if (!config_.password.empty()) expect_ok(connection.command({"AUTH", config_.password}), "AUTH");
  return connection;
}

RedisReply RedisServer::command(const std::vector<std::string>& words) {
  if (!admin_) admin_.emplace(connect());
  RedisReply reply;
  try {
    reply = admin_->command(words);
  } catch (const std::runtime_error&) {
    admin_.reset();
    throw;
  }
  expect_ok(reply, words.front());
  return reply;
}

std::string RedisServer::info(const std::string& section, const std::string& field) {
  const std::string text = command({"INFO", section}).text;
  const std::string start = "\n" + field + ":";
  const auto found = text.find(start);
  if (found == std::string::npos) return {};
  const auto from = found + start.size();
  return text.substr(from, text.find('\r', from) - from);
}

// WAIT is about the last write of its connection, so there has to be one: one without a key, for the nodes of a
// cluster.
bool RedisServer::replicated_to(std::size_t replicas) {
  if (replicas == 0) return true;
  (void)command({"FUNCTION", "FLUSH"});
  return command({"WAIT", std::to_string(replicas), "1000"}).integer >= static_cast<std::int64_t>(replicas);
}

// From INFO commandstats: "cmdstat_evalsha:calls=12,usec=340,...".
std::int64_t RedisServer::calls_of(std::initializer_list<std::string> commands) {
  const std::string stats = command({"INFO", "commandstats"}).text;
  std::int64_t calls = 0;
  for (const std::string& each : commands) {
    const std::string start = "cmdstat_" + each + ":calls=";
    if (const auto at = stats.find(start); at != std::string::npos)
      calls += std::stoll(stats.substr(at + start.size()));
  }
  return calls;
}

}  // namespace dlock::test
