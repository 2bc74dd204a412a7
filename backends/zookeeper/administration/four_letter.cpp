#include "backends/zookeeper/administration/four_letter.hpp"

#include <charconv>
#include <system_error>
#include <utility>

namespace dlock::zookeeper {

namespace {

constexpr std::size_t longest_answer = std::size_t{4} << 20U;  // cons tells some 100 bytes of each client

// Cuts the first line off.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

}  // namespace

// --- A question ------------------------------------------------------------------------------------------------------

FourLetterQuestion::FourLetterQuestion(Executor& executor, const Host& host, std::string_view word, TimePoint deadline,
                                       Handler done)
    : name_(host.to_string()), word_(word), done_(std::move(done)), timer_(executor) {
  timer_.arm(deadline, [this] { finish(broken("no answer to " + word_ + " in time")); });
  common::Stream::Events& events = *this;
  stream_.emplace(executor, common::Peer{.host = host.name, .port = host.port, .name = name_}, events);
  stream_->open(deadline);
}

FourLetterQuestion::~FourLetterQuestion() = default;

void FourLetterQuestion::opened() {
  stream_->write(word_);
  stream_->flush();
}

void FourLetterQuestion::received(std::string_view bytes) {
  text_.append(bytes);
  if (text_.size() > longest_answer) finish(broken("the answer to " + word_ + " has no end"));
}

// The server closes the connection behind its answer.
void FourLetterQuestion::closed(Failure why, bool orderly) {
  if (!orderly) return finish(std::move(why));
  if (text_.empty()) return finish(broken("closed the connection instead of answering " + word_));
  std::string our_address = stream_->local_address();
  finish(Answer{std::move(text_), std::move(our_address)});
}

Failure FourLetterQuestion::broken(const std::string& why) const {
  return {errc::unavailable, name_ + ": " + why};
}

void FourLetterQuestion::finish(Result<Answer> answer) {
  timer_.disarm();
  stream_.reset();  // which may have called us, and calls nobody any more
  if (const auto done = std::exchange(done_, nullptr)) done(std::move(answer));  // may destroy us
}

// --- What the answers say --------------------------------------------------------------------------------------------

std::optional<ServerStatus> read_srvr(std::string_view text) {
  ServerStatus status;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, colon);
    const std::string_view value = line.substr(colon + 2);
    if (key == "Zookeeper version" || key == "ZooKeeper version") {
      status.version = value.substr(0, value.find_first_of("-, "));
    } else if (key == "Mode") {
      status.mode = value;
    } else if (key == "Connections") {
      status.connections = number_in(value);
    }
  }
  if (status.version.empty() || status.mode.empty()) return std::nullopt;
  return status;
}

bool is_refusal(std::string_view text) noexcept {
  return text.find("is not executed because it is not in the whitelist") != std::string_view::npos;
}

std::optional<std::uint64_t> read_number(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (!line.starts_with(key) || line.size() == key.size()) continue;
    const char delimiter = line[key.size()];
    if (delimiter == '\t' || delimiter == '=') return number_in(line.substr(key.size() + 1));
  }
  return std::nullopt;
}

// " /127.0.0.1:45678[1](queued=0,recved=3,sent=3,...)"; an IPv6 address is written out, in brackets or not.
std::size_t count_connections(std::string_view text, std::string_view address) {
  std::size_t count = 0;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    const std::size_t slash = line.find('/');
    if (slash == std::string_view::npos) continue;
    line = line.substr(slash + 1);
    const std::size_t port = line.rfind(':', line.find('('));
    if (port == std::string_view::npos) continue;
    std::string_view from = line.substr(0, port);
    if (from.starts_with('[') && from.ends_with(']')) from = from.substr(1, from.size() - 2);
    if (from == address) ++count;
  }
  return count;
}

}  // namespace dlock::zookeeper
