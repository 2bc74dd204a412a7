#include "tests/support/redis_connection.hpp"

#include <hiredis/hiredis.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <stdexcept>
#include <string_view>

#include "torture/rig/hang_guard.hpp"

namespace dlock::test {
namespace {

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
    (void)redisReaderFeed(reader_.get(), bytes.data(), static_cast<std::size_t>(n));  // told by the next GetReply
  }
}

}  // namespace dlock::test
