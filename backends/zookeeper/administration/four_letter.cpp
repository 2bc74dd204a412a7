#include "backends/zookeeper/administration/four_letter.hpp"

#include <cstddef>
#include <utility>

namespace dlock::zookeeper {

namespace {

constexpr std::string_view word = "srvr";
constexpr std::size_t longest_answer = 64 << 10U;  // it has some 300 bytes

}  // namespace

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
  if (text_.size() > longest_answer) finish(broken("its answer does not end"));
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
  stream_.reset();  // which may have called us, and makes no more calls
  if (const auto done = std::exchange(done_, nullptr)) done(std::move(answer));  // may destroy us
}

}  // namespace dlock::zookeeper
