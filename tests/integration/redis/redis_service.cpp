// Redis as the rooms have it: with an append-only file, and a user who has to authenticate on every connection.
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/redis/requests/keys.hpp"
#include "network/room.hpp"
#include "tests/support/redis_server.hpp"

namespace dlock::test {

namespace {

RedisConfig config_with(const std::string& tls_names) {
  RedisConfig config{.append_only = true, .tls = !tls_names.empty(), .tls_names = tls_names, .password = "root"};
  config.user = RedisUser{};
  config.user->rights.emplace_back("+scan");  // to list locks
  return config;
}

class RedisService final : public Service {
 public:
  explicit RedisService(const std::string& tls_names) : server_(config_with(tls_names)) {}

  [[nodiscard]] std::uint16_t port() const override { return server_.port(); }
  [[nodiscard]] std::string url_at(std::uint16_t port, const std::string& parameters) const override {
    return server_.url_at(port, parameters);
  }
  [[nodiscard]] std::string plain_url(std::uint16_t port) const override {
    return "redis://locker:locker-secret@127.0.0.1:" + std::to_string(port);
  }
  [[nodiscard]] std::string tls_url(std::uint16_t port, const std::string& authority) const override {
    return "rediss" + plain_url(port).substr(5) + (authority.empty() ? "" : "?tls_ca=" + authority);
  }
  [[nodiscard]] std::string authority() const override { return server_.certificate().authority(); }
  void renew_certificate() override { server_.certificate().renew(); }
  [[nodiscard]] std::string url_of_stranger(const std::string& password, const std::string& parameters) override {
    return "redis://locker:" + password + "@127.0.0.1:" + std::to_string(port()) + "?" + parameters;
  }
  void stop() override { server_.stop(); }
  void kill() override { server_.kill(); }
  void start() override { server_.start(); }
  void freeze() override { server_.freeze(); }
  void thaw() override { server_.thaw(); }
  void clear() override { (void)server_.command({"FLUSHALL"}); }
  [[nodiscard]] std::size_t residue(const std::string& /*strategy*/, const std::string& name) override {
    const redis::Keys keys = redis::keys_of("dlock:", name);
    EXPECT_NE(server_.command({"PTTL", keys.lock}).integer, -1) << "a lock without an end";
    return static_cast<std::size_t>(server_.command({"EXISTS", keys.lock}).integer) + waiters(name);
  }
  [[nodiscard]] bool remembers(const std::string& /*strategy*/, const std::string& name) override {
    const redis::Keys keys = redis::keys_of("dlock:", name);
    return server_.command({"EXISTS", keys.lock, keys.queue, keys.alive, keys.fence}).integer > 0;
  }
  void age(Duration by) override {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(by.value()).count();
    (void)server_.command({"EVAL",
                           "for _, key in ipairs(redis.call('KEYS', '*dlf')) do "
                           "local token, rest = string.match(redis.call('GET', key), '^(%d+)(.*)$') "
                           "redis.call('SET', key, string.format('%.0f', token - ARGV[1]) .. rest) end",
                           "0", std::to_string(us)});
  }
  [[nodiscard]] bool has_waiter(const std::string& strategy, const std::string& name) override {
    return strategy != "queue" || waiters(name) > 0;
  }

 private:
  [[nodiscard]] std::size_t waiters(const std::string& name) {
    return static_cast<std::size_t>(server_.command({"ZCARD", redis::keys_of("dlock:", name).queue}).integer);
  }

  RedisServer server_;
};

using RedisCommand = std::vector<std::string>;

// Takes the next whole command off the front of the text; nullopt if there is none yet.
std::optional<RedisCommand> take_command(std::string_view& text) {
  std::string_view rest = text;
  const auto number = [&rest](char sign) -> std::optional<std::size_t> {
    const auto end = rest.find("\r\n");
    if (end == std::string_view::npos || rest.front() != sign) return std::nullopt;
    const auto value = static_cast<std::size_t>(std::stoul(std::string(rest.substr(1, end - 1))));
    rest.remove_prefix(end + 2);
    return value;
  };
  const auto count = number('*');
  if (!count) return std::nullopt;
  RedisCommand words;
  for (std::size_t i = 0; i < *count; ++i) {
    const auto size = number('$');
    if (!size || rest.size() < *size + 2) return std::nullopt;
    words.emplace_back(rest.substr(0, *size));
    rest.remove_prefix(*size + 2);
  }
  text = rest;
  return words;
}

// Answers every command by itself.
ScriptedServer::Script answer_commands(std::function<ScriptedServer::Answer(const RedisCommand&)> answer) {
  return [answer = std::move(answer)](const std::string& received) {
    ScriptedServer::Answer all;
    std::string_view rest = received;
    while (const auto command = take_command(rest)) {
      const ScriptedServer::Answer one = answer(*command);
      all.bytes += one.bytes;
      all.repeat += one.repeat;
      all.close = all.close || one.close;
      if (!one.repeat.empty() || one.close) break;
    }
    all.unread = rest.size();
    return all;
  };
}

// Says yes to everything until a script is to be run, and then what it was told to say.
ScriptedServer::Script polite_until_asked(ScriptedServer::Answer answer) {
  return answer_commands([answer = std::move(answer)](const RedisCommand& command) {
    return command.front().starts_with("EVAL") ? answer : ScriptedServer::Answer{.bytes = "+OK\r\n"};
  });
}

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

}  // namespace

const ServiceKind& service_kind() {
  static const ServiceKind kind{
      .name = "redis",
      .strategies = {"queue"},
      .variants = {"broadcast", "poll"},
      .start = [](const std::string& tls_names) { return std::make_unique<RedisService>(tls_names); },
      .short_lease = 1s,
      .connect_timeout = 300ms,
      .lock_request = "EVAL",
      .hostile_url = [](std::uint16_t port) { return "redis://127.0.0.1:" + std::to_string(port) + "?"; },
      .polite_until_asked = polite_until_asked,
      .hostilities =
          {
              {"http_open", {.bytes = "HTTP/1.1 400 Bad Request\r\nContent-Length: 1000000\r\n\r\n"}},
              {"endless_garbage", {.repeat = std::string("\x7f\x00\xfe", 3)}},
              {"endless_inline", {.bytes = "+", .repeat = "never ends "}},
              {"endless_error", {.bytes = "-", .repeat = "ERR never ends "}},
              {"endless_number", {.bytes = ":", .repeat = "1"}},
              {"endless_replies", {.repeat = "+OK\r\n"}},
              {"endless_arrays", {.repeat = "*2\r\n:7\r\n$1\r\n1\r\n"}},
              {"giant_bulk", {.bytes = "$536870912\r\n", .repeat = "x"}},
              {"giant_bulk_header", {.bytes = "$9223372036854775807\r\n", .repeat = "x"}},
              {"overflowing_bulk", {.bytes = "$99999999999999999999999999\r\n", .repeat = "x"}},
              {"negative_bulk", {.bytes = "$-7\r\nabc\r\n"}},
              {"bulk_without_end", {.bytes = "$5\r\nhello, no line end here\r\n"}},
              {"giant_array", {.bytes = "*4294967295\r\n", .repeat = ":1\r\n"}},
              {"overflowing_array", {.bytes = "*99999999999999999999\r\n"}},
              {"negative_array", {.bytes = "*-5\r\n"}},
              {"nested_arrays", {.bytes = repeated("*1\r\n", 100'000)}},
              {"endless_nesting", {.repeat = "*1\r\n"}},
              {"wide_nesting", {.repeat = "*1024\r\n"}},
              {"unknown_type", {.bytes = "%1\r\n+key\r\n+value\r\n"}},
              {"half_a_reply", {.bytes = "*2\r\n:1\r\n$16\r\n17"}},
              {"half_a_reply_and_end", {.bytes = "*2\r\n:1\r\n$16\r\n17", .close = true}},
          },
  };
  return kind;
}

}  // namespace dlock::test
