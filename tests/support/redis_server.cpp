#include "tests/support/redis_server.hpp"

#include <hiredis/hiredis.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <chrono>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "torture/rig/hang_guard.hpp"

namespace dlock::test {
namespace {

void expect_ok(const RedisReply& reply, const std::string& what) {
  if (reply.is_error()) throw std::runtime_error(what + ": " + reply.text);
}

struct FreeReply {
  void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};

RedisReply convert(const redisReply& reply) {
  using Type = RedisReply::Type;
  const auto text = [&] { return std::string(reply.str, static_cast<std::size_t>(reply.len)); };
  switch (reply.type) {
    case REDIS_REPLY_NIL:
      return {};
    case REDIS_REPLY_STATUS:
      return {.type = Type::status, .text = text()};
    case REDIS_REPLY_ERROR:
      return {.type = Type::error, .text = text()};
    case REDIS_REPLY_STRING:
      return {.type = Type::string, .text = text()};
    case REDIS_REPLY_INTEGER:
      return {.type = Type::integer, .integer = reply.integer};
    case REDIS_REPLY_ARRAY: {
      RedisReply array{.type = Type::array};
      for (std::size_t i = 0; i < reply.elements; ++i) array.elements.push_back(convert(*reply.element[i]));
      return array;
    }
    default:
      throw std::runtime_error("a reply of unknown type " + std::to_string(reply.type));
  }
}

}  // namespace

void RedisConnection::FreeReader::operator()(redisReader* reader) const noexcept {
  redisReaderFree(reader);
}

RedisConnection::RedisConnection(const rig::Endpoint& endpoint)
    : fd_(rig::connect_to(endpoint)), reader_(redisReaderCreate()) {
  const timeval limit{.tv_sec = rig::hang_guard.count(), .tv_usec = 0};
  rig::require(::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), "SO_RCVTIMEO");
}

RedisReply RedisConnection::command(const std::vector<std::string>& words) {
  send(words);
  return receive();
}

void RedisConnection::send(const std::vector<std::string>& words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t n = rig::require(::send(fd_.get(), rest.data(), rest.size(), MSG_NOSIGNAL), "send to Redis");
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
}

RedisReply RedisConnection::receive() {
  std::array<char, 16384> bytes;
  for (;;) {
    void* reply = nullptr;
    if (redisReaderGetReply(reader_.get(), &reply) != REDIS_OK) throw std::runtime_error(reader_->errstr);
    if (reply != nullptr) return convert(*std::unique_ptr<redisReply, FreeReply>(static_cast<redisReply*>(reply)));
    const ssize_t n = rig::require(::recv(fd_.get(), bytes.data(), bytes.size(), 0), "receive from Redis");
    if (n == 0) throw std::runtime_error("Redis closed the connection");
    (void)redisReaderFeed(reader_.get(), bytes.data(), static_cast<std::size_t>(n));  // the next GetReply reports it
  }
}

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

RedisServer::RedisServer(RedisConfig config)
    : Server("redis-server", config.certificate ? config.certificate : certificate_if(config.tls, config.tls_names)),
      config_(std::move(config)) {
  start_on_free_ports();
}

std::string RedisServer::url_of(const std::string& addresses, const std::string& parameters) const {
  std::string url = config_.tls ? "rediss://" : "redis://";
  if (config_.user) {
    url += config_.user->name + ":" + config_.user->password + "@";
  } else if (!config_.password.empty()) {
    url += ":" + config_.password + "@";
  }
  return with_parameters(url + addresses, {config_.tls ? "tls_ca=" + certificate().authority() : "", parameters});
}

std::vector<std::string> RedisServer::configure() {
  std::ostringstream text;
  text << "bind 127.0.0.1\ndaemonize no\nlogfile \"\"\nsave \"\"\n"
       << "dir " << directory() << "\nunixsocket " << socket_path() << "\n"
       << "repl-diskless-sync-delay 0\nappendonly " << (config_.append_only ? "yes" : "no") << "\n";
  if (config_.tls) {
    text << "port 0\ntls-port " << port() << "\ntls-auth-clients no\ntls-ca-cert-file " << certificate().authority()
         << "\ntls-cert-file " << certificate().certificate() << "\ntls-key-file " << certificate().key() << "\n";
  } else {
    text << "port " << port() << "\n";
  }
  if (!config_.password.empty()) text << "requirepass " << config_.password << "\n";
  if (config_.primary) text << "replicaof 127.0.0.1 " << *config_.primary << "\n";
  if (config_.user) {
    text << "user";
    for (const std::string& word : config_.user->rules()) text << " " << word;
    text << "\n";
  }
  for (const std::string& line : config_.lines) text << line << "\n";
  write_file(directory() + "/redis.conf", text.str());
  return {"redis-server", directory() + "/redis.conf"};
}

// The last line that it prints before it serves: then data is loaded, and all sockets are open.
bool RedisServer::serves() const {
  return has_printed("ready to accept connections at " + socket_path());
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

// WAIT refers to the last write of its connection, so there must be one: one without a key, for the nodes of a cluster.
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

void await_settled(const std::string& what, const std::function<std::string()>& missing) {
  const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
  while (true) {
    std::string why;
    try {
      why = missing();
      if (why.empty()) return;
    } catch (const std::exception& error) {
      why = error.what();
    }
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error(what + " does not settle: " + why);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

std::size_t count_of(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

}  // namespace dlock::test
