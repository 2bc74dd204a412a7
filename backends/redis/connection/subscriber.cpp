#include "backends/redis/connection/subscriber.hpp"

#include <utility>

#include "backends/redis/connection/command.hpp"
#include "backends/redis/connection/redirection.hpp"
#include "backends/redis/connection/server_error.hpp"
#include "backends/redis/hash_slot.hpp"

namespace dlock::redis {

Subscriber::Subscriber(Executor& executor, const Options& options, StreamFactory streams, User& user)
    : executor_(executor), options_(options), user_(user), link_(executor, options, std::move(streams), *this, true) {}

Subscriber::~Subscriber() = default;

// --- Requests --------------------------------------------------------------------------------------------------------

void Subscriber::subscribe(const std::string& channel) {
  Channel& entry = channels_[channel];
  if (std::exchange(entry.wanted, true) || forbidden_) return;
  if (!link_.ready()) return link_.want();
  send(true, channel);
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
  found->second.wanted = false;
  ++found->second.leaving;
  send(false, channel);
  link_.flush();
}

void Subscriber::resume() {
  if (!channels_.empty() && !forbidden_ && !link_.ready()) link_.want();
}

void Subscriber::send(bool subscribe, const std::string& channel) {
  const std::string_view plain = subscribe ? "SUBSCRIBE" : "UNSUBSCRIBE";
  link_.write(Command{options_.cluster ? "S" + std::string(plain) : plain, channel}.bytes());
}

// --- Answers and messages --------------------------------------------------------------------------------------------

void Subscriber::link_received(Reply reply) {
  reply.is(Reply::Type::error) ? refused(reply.text) : read_push(reply);
}

void Subscriber::refused(const std::string& error) {
  const ServerError kind = classify(error);
  const Failure why = to_failure(error);
  if (const auto moved = options_.cluster ? read_redirection(error, options_.host) : std::nullopt) {
    const auto in_slot = [&](const std::string& name) { return slot_of(name) == moved->slot; };
    auto lost = channels();
    std::erase_if(lost, [&](const std::string& name) { return !in_slot(name); });
    (void)std::erase_if(channels_, [&](const auto& entry) { return in_slot(entry.first); });
    return report_lost(lost);
  }
  const bool too_old = options_.cluster && kind == ServerError::unknown_command;
  if (kind != ServerError::no_permission && !too_old) {
    return link_.break_off({errc::unavailable, options_.endpoint() + ": " + why.detail});
  }
  forbidden_ = true;
  // In a task of its own: the link is the caller.
  executor_.post(lifetime_.guard([this] { link_.stop(); }));
  user_.on_forbidden(why);
}

// ["subscribe", channel, count], ["unsubscribe", channel, count], ["message", channel, text], and the answers to PING:
// ["pong", ""] while the connection has subscriptions, else the status PONG.
void Subscriber::read_push(const Reply& reply) {
  using Type = Reply::Type;
  if (reply.is(Type::status)) return;
  const auto& fields = reply.elements;
  const bool push = reply.is(Type::array) && fields.size() >= 2 && fields[0].is(Type::string);
  if (push && fields[0].text == "pong") return;
  if (!push || fields.size() != 3 || !fields[1].is(Type::string)) {
    return link_.break_off(unexpected("SUBSCRIBE", reply));
  }
  // Sharded channels have the same words, with an "s" in front.
  std::string_view kind = fields[0].text;
  if (options_.cluster && kind.starts_with('s')) kind.remove_prefix(1);
  const auto found = channels_.find(fields[1].text);
  if (found == channels_.end()) return;
  if (kind == "message" && fields[2].is(Type::string)) {
    if (found->second.wanted) user_.on_message(std::string(found->first), fields[2].text);
    return;
  }
  if (!read_change(found->first, kind)) link_.break_off(unexpected("SUBSCRIBE", reply));
}

// False: it answers no request of this connection.
bool Subscriber::read_change(const std::string& name, std::string_view kind) {
  const auto found = channels_.find(name);
  Channel& channel = found->second;
  if (kind == "subscribe" && channel.joining > 0) {
    --channel.joining;
    if (!channel.wanted || channel.joining != 0) return true;
    link_.answered();
    user_.on_subscribed(std::string(found->first));
  } else if (kind == "unsubscribe" && channel.leaving > 0) {
    --channel.leaving;
    if (!channel.wanted && channel.leaving == 0) channels_.erase(found);
  } else if (kind == "unsubscribe" && options_.cluster) {  // unasked: the slot has moved
    const std::string lost = found->first;
    channels_.erase(found);
    user_.on_lost(lost);
  } else {
    return false;
  }
  return true;
}

std::vector<std::string> Subscriber::channels() const {
  std::vector<std::string> out;
  for (const auto& [name, channel] : channels_) {
    if (channel.wanted) out.push_back(name);
  }
  return out;
}

void Subscriber::report_lost(const std::vector<std::string>& channels) {
  const Lifetime::Watch life = lifetime_.watch();
  for (const std::string& name : channels) {
    user_.on_lost(name);
    if (life.over()) return;
  }
}

// --- The connection --------------------------------------------------------------------------------------------------

void Subscriber::link_ready() {
  for (auto& [name, channel] : channels_) {
    send(true, name);
    ++channel.joining;
  }
}

// The command connection reports what is wrong with the server.
void Subscriber::link_down(const Failure& /*why*/, bool was_ready) {
  forget();
  if (was_ready) report_lost(channels());
}

// Forgets which requests the last connection has not confirmed.
void Subscriber::forget() {
  std::erase_if(channels_, [](const auto& entry) { return !entry.second.wanted; });
  for (auto& [name, channel] : channels_) channel = {.wanted = true};
}

void Subscriber::link_silent() {
  link_.write(Command{"PING"}.bytes());
  link_.flush();
}

}  // namespace dlock::redis
