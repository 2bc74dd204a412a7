#include "fake_server.hpp"

#include <algorithm>
#include <stdexcept>

#include "tests/simulation/redis/redis_model.hpp"

namespace dlock::redis {

const Script* script_in(const Words& command) {
  return command.size() > 1 && command[0].starts_with("EVAL") ? known_script(command[1]) : nullptr;
}

StreamFactory FakeServer::streams() {
  return [this](Executor& executor, const Options&, common::Stream::Events& events) {
    return std::make_unique<FakeStream>(*this, executor, events);
  };
}

std::vector<Words> FakeServer::calls(std::string_view script) const {
  std::vector<Words> out;
  std::copy_if(commands.begin(), commands.end(), std::back_inserter(out), [&](const Words& command) {
    const Script* called = script_in(command);
    return called != nullptr && called->name == script;
  });
  return out;
}

std::int64_t FakeServer::subscribers() const {
  return std::count_if(connections.begin(), connections.end(),
                       [](const FakeStream* wire) { return wire->subscribed_; });
}

void FakeServer::cut() {
  for (FakeStream* wire : std::vector(connections)) wire->close({errc::unavailable, "cut"});
}

void FakeServer::publish(const std::string& channel, const std::string& text) {
  for (FakeStream* wire : std::vector(connections)) {
    if (wire->subscribed_) wire->reply(published(channel, text));
  }
}

void FakeServer::take(FakeStream& from, const Words& command) {
  if (serve) return serve(from, command);
  const std::string& verb = command.front();
  if (verb == "AUTH" || verb == "SELECT" || verb == "CLIENT") {
    handshakes.push_back(command);
    const std::string reply = answer ? answer(from, command) : "";
    return from.reply(reply.empty() ? "+OK\r\n" : reply);
  }
  // Whether scripts are answered at all, on a connection that nothing else is asked on.
  const bool probe = command == Words{"EVAL", "return 1", "0"};
  if (verb != "ROLE" && verb != "INFO" && verb != "PING" && verb != "PUBLISH" && !probe) commands.push_back(command);
  if (verb == "SUBSCRIBE" || verb == "SSUBSCRIBE") from.subscribed_ = true;
  std::string reply = answer ? answer(from, command) : "";
  if (probe && reply.empty() && answer) reply = number(1);
  // How many receive it, which a client asks that has subscribed.
  if (verb == "PUBLISH" && reply.empty()) reply = number(subscribers());
  if (verb == "ROLE" && reply.empty()) reply = role("master");
  if (verb == "INFO" && reply.empty()) reply = "-NOPERM this user has no permissions to run the 'info' command\r\n";
  if (!reply.empty()) from.reply(reply);
}

FakeStream::FakeStream(FakeServer& server, Executor& executor, Events& events)
    : server_(server), executor_(executor), events_(events) {}

FakeStream::~FakeStream() {
  if (server_.ended) server_.ended(*this);
  std::erase(server_.connections, this);
}

void FakeStream::later(Executor::Task task) {
  executor_.post(lifetime_.guard(std::move(task)));
}

void FakeStream::open(TimePoint /*deadline*/) {
  ++server_.dialled;
  switch (server_.dialling) {
    case FakeServer::Dialling::accept:
      return later([this] {
        server_.connections.push_back(this);
        events_.opened();
      });
    case FakeServer::Dialling::refuse:
      return close({errc::unavailable, "localhost:6379: Connection refused"});
    case FakeServer::Dialling::silence:
      return;
  }
}

void FakeStream::flush() {
  if (!server_.takes_bytes) return;
  sent_ += unsent_.size();
  commands_.feed(std::exchange(unsent_, {}));
  while (const auto command = commands_.next()) {
    Words words;
    for (const Reply& word : command->elements) words.push_back(word.text);
    server_.take(*this, words);
  }
}

void FakeStream::reply(const std::string& bytes) {
  if (hung_up_) return;
  arrived_ += bytes;
  if (std::exchange(receives_, true)) return;
  later([this] {
    receives_ = false;
    receive();
  });
}

void FakeStream::receive() {
  if (arrived_.empty()) return;
  const std::string bytes = std::exchange(arrived_, {});
  const Lifetime::Watch life = lifetime_.watch();
  events_.received(bytes);
  if (!life.over()) events_.drained();
}

void FakeStream::close(Failure why) {
  hung_up_ = true;
  later([this, why = std::move(why)] { events_.closed(why, false); });
}

std::string lines(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\r\n" : std::string(1, c);
  return out;
}
Reply parsed(std::string_view text) {
  ReplyReader reader;
  reader.feed(lines(text));
  auto reply = reader.next();
  if (!reply) throw std::invalid_argument("no reply: " + std::string(text));
  return *std::move(reply);
}

Options options_for(const std::string& url, std::chrono::nanoseconds lease) {
  return parse_options({.url = Url::parse(url),
                        .holder = "host:1:test",
                        .lease = lease,
                        .response_timeout = std::chrono::seconds(2),
                        .connect_timeout = std::chrono::seconds(5)});
}

std::string role(const std::string& name) {
  return "*1\r\n" + bulk(name);
}
std::string bulk(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}
std::string about_channel(const std::string& kind, const std::string& channel) {
  return "*3\r\n" + bulk(kind) + bulk(channel) + ":1\r\n";
}
std::string published(const std::string& channel, const std::string& text) {
  return "*3\r\n" + bulk("message") + bulk(channel) + bulk(text);
}
std::string number(std::int64_t value) {
  return ":" + std::to_string(value) + "\r\n";
}

}  // namespace dlock::redis
