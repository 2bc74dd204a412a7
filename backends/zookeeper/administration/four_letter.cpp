#include "backends/zookeeper/administration/four_letter.hpp"

#include <cstddef>
#include <utility>

namespace dlock::zookeeper {

namespace {

constexpr std::string_view word = "srvr";
constexpr std::size_t longest_answer = 64 << 10U;  // it has some 300 bytes

// Cuts the first line off.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

// --- A question ------------------------------------------------------------------------------------------------------

FourLetterQuestion::FourLetterQuestion(Executor& executor, const Host& host, TimePoint deadline, Handler done)
    : name_(host.to_string()), done_(std::move(done)), timer_(executor) {
  timer_.arm(deadline, [this] { finish(broken("no answer in time")); });
  common::Stream::Events& events = *this;
  stream_.emplace(executor, common::Peer{.host = host.name, .port = host.port, .name = name_}, events);
  stream_->open(deadline);
}

FourLetterQuestion::~FourLetterQuestion() = default;

void FourLetterQuestion::opened() {
  stream_->write(word);
  stream_->flush();
}

void FourLetterQuestion::received(std::string_view bytes) {
  text_.append(bytes);
  if (text_.size() > longest_answer) finish(broken("its answer has no end"));
}

// The server closes the connection behind its answer.
void FourLetterQuestion::closed(Failure why, bool orderly) {
  if (!orderly) return finish(std::move(why));
  if (text_.empty()) return finish(broken("closed the connection instead of answering"));
  finish(std::move(text_));
}

Failure FourLetterQuestion::broken(const std::string& why) const {
  return {errc::unavailable, name_ + ": " + why};
}

void FourLetterQuestion::finish(Result<std::string> answer) {
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
    }
  }
  if (status.version.empty() || status.mode.empty()) return std::nullopt;
  return status;
}

bool is_refusal(std::string_view text) noexcept {
  return text.find("is not executed because it is not in the whitelist") != std::string_view::npos;
}

}  // namespace dlock::zookeeper
