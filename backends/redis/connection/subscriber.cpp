#include "backends/redis/connection/subscriber.hpp"

#include <utility>
#include <vector>

#include "backends/redis/hash_slot.hpp"
#include "backends/redis/cluster/slot_map.hpp"
#include "backends/redis/connection/command.hpp"
#include "backends/redis/connection/server_error.hpp"

namespace dlock::redis {

Subscriber::Subscriber(Executor& executor, const Options& options, WireFactory wires, Listener& listener)
    : executor_(executor),
      options_(options),
      listener_(listener),
      link_(executor, options, std::move(wires), *this, true) {}

Subscriber::~Subscriber() = default;

void Subscriber::subscribe(const std::string& channel) {
  Channel& entry = channels_[channel];
  if (std::exchange(entry.wanted, true) || forbidden_) return;
  if (!link_.ready()) return link_.want();
  send(subscribe_word(), channel);
  ++entry.joining;
  link_.flush();
}

void Subscriber::unsubscribe(const std::string& channel) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return;
  if (!link_.ready()) {
    channels_.erase(found);
    return;
  }
  found->second.wanted = found->second.confirmed = false;
  ++found->second.leaving;
  send(options_.cluster ? "SUNSUBSCRIBE" : "UNSUBSCRIBE", channel);
  link_.flush();
}

void Subscriber::resume() {
  if (!channels_.empty() && !forbidden_ && !link_.ready()) link_.want();
}

bool Subscriber::hears(const std::string& channel) const {
  const auto found = channels_.find(channel);
  return found != channels_.end() && found->second.confirmed;
}

std::string_view Subscriber::subscribe_word() const {
  return options_.cluster ? "SSUBSCRIBE" : "SUBSCRIBE";
}

void Subscriber::send(std::string_view command, const std::string& channel) {
  link_.write(Command{command, channel}.bytes());
}

void Subscriber::link_ready() {
  for (auto& [name, channel] : channels_) {
    send(subscribe_word(), name);
    ++channel.joining;
  }
}

void Subscriber::link_received(Reply reply) {
  reply.is(Reply::Type::error) ? refused(reply.text) : take_news(reply);
}

void Subscriber::refused(const std::string& error) {
  const ServerError kind = classify(error);
  const Failure why = to_failure(error);
  if (const auto moved = options_.cluster ? read_redirection(error, options_.host) : std::nullopt) {
    std::vector<std::string> lost;
    for (const auto& [name, channel] : channels_) {
      if (slot_of(name) == moved->slot && channel.wanted) lost.push_back(name);
    }
    (void)std::erase_if(channels_, [&](const auto& entry) { return slot_of(entry.first) == moved->slot; });
    const Lifetime::Watch life = lifetime_.watch();
    for (const std::string& name : lost) {
      listener_.lost(name);
      if (life.over()) return;
    }
    return;
  }
  const bool too_old = options_.cluster && kind == ServerError::unknown_command;
  if (kind != ServerError::no_permission && !too_old) {
    return link_.break_off({errc::unavailable, options_.endpoint() + ": " + why.detail});
  }
  forbidden_ = true;
  // Not from inside: this is the link's own call.
  executor_.post(lifetime_.guard([this] { link_.stop(); }));
  listener_.forbidden(why);
}

// ["subscribe", channel, count], ["unsubscribe", channel, count], ["message", channel, text], and the answers to PING:
// ["pong", ""] where we are subscribed to something, else the status PONG.
void Subscriber::take_news(const Reply& reply) {
  using Type = Reply::Type;
  if (reply.is(Type::status)) return;
  const auto& fields = reply.elements;
  const bool news = reply.is(Type::array) && fields.size() >= 2 && fields[0].is(Type::string);
  if (news && fields[0].text == "pong") return;
  if (!news || fields.size() != 3 || !fields[1].is(Type::string)) {
    return link_.break_off(unexpected("SUBSCRIBE", reply));
  }
  // Sharded channels have the same words, with an "s" in front.
  std::string_view kind = fields[0].text;
  if (options_.cluster && kind.starts_with('s')) kind.remove_prefix(1);
  const auto found = channels_.find(fields[1].text);
  if (found == channels_.end()) return;
  Channel& channel = found->second;
  if (kind == "message" && fields[2].is(Type::string)) {
    if (channel.wanted) listener_.message(std::string(found->first), fields[2].text);
    return;
  }
  if (!take_change(found->first, kind)) link_.break_off(unexpected("SUBSCRIBE", reply));
}

// False: that was not asked for.
bool Subscriber::take_change(const std::string& name, std::string_view kind) {
  const auto found = channels_.find(name);
  Channel& channel = found->second;
  if (kind == "subscribe" && channel.joining > 0) {
    --channel.joining;
    if (!channel.wanted || channel.joining != 0) return true;
    channel.confirmed = true;
    link_.answered();
    listener_.subscribed(std::string(found->first));
  } else if (kind == "unsubscribe" && channel.leaving > 0) {
    --channel.leaving;
    if (!channel.wanted && channel.leaving == 0) channels_.erase(found);
  } else if (kind == "unsubscribe" && options_.cluster) {  // unasked: the slot has moved
    const std::string lost = found->first;
    channels_.erase(found);
    listener_.lost(lost);
  } else {
    return false;
  }
  return true;
}

void Subscriber::link_drained() {
  link_.flush();
}

// The command connection reports what is wrong with the server.
void Subscriber::link_down(const Failure& /*why*/, bool was_ready) {
  forget();
  if (was_ready) listener_.interrupted();
}

// What the server of the last connection knew.
void Subscriber::forget() {
  std::erase_if(channels_, [](const auto& entry) { return !entry.second.wanted; });
  for (auto& [name, channel] : channels_) channel = {.wanted = true};
}

void Subscriber::link_silent() {
  link_.write(Command{"PING"}.bytes());
  link_.flush();
}

}  // namespace dlock::redis
