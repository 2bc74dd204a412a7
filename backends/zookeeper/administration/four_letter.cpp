#include "backends/zookeeper/administration/four_letter.hpp"

#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "backends/common/stream.hpp"

namespace dlock::zookeeper {

namespace {

constexpr std::string_view word = "srvr";
constexpr std::size_t longest_answer = 64 << 10U;  // it has some 300 bytes

class Question final : private common::Stream::Events {
 public:
  using Done = std::function<void(Result<std::string>)>;

  // Calls done once, which destroys this object.
  Question(Executor& executor, const Host& host, TimePoint deadline, Done done)
      : name_(host.to_string()),
        done_(std::move(done)),
        timer_(executor),
        stream_(executor, {.host = host.name, .port = host.port, .name = name_}, *this) {
    timer_.arm(deadline, [this] { finish(broken("no answer in time")); });
    stream_.open(deadline);
  }

 private:
  void opened() override {
    stream_.write(word);
    stream_.flush();
  }
  void received(std::string_view bytes) override {
    text_.append(bytes);
    if (text_.size() > longest_answer) finish(broken("its answer does not end"));
  }
  void drained() override {}
  // The server closes the connection behind its answer.
  void closed(Failure why, bool orderly) override {
    if (!orderly) return finish(std::move(why));
    if (text_.empty()) return finish(broken("closed the connection instead of answering"));
    finish(std::move(text_));
  }

  [[nodiscard]] Failure broken(const std::string& why) const { return {errc::unavailable, name_ + ": " + why}; }
  void finish(Result<std::string> answer) {
    const auto done = std::move(done_);
    done(std::move(answer));
  }

  const std::string name_;  // of the server
  Done done_;
  Timer timer_;
  std::string text_;
  common::TcpStream stream_;
};

}  // namespace

ServerAsker ask_over_tcp(Executor& executor) {
  using Questions = std::list<std::optional<Question>>;
  return [&executor, questions = std::make_shared<Questions>()](const Host& host, TimePoint deadline, auto done) {
    const auto question = questions->emplace(questions->end());
    question->emplace(executor, host, deadline, [all = questions.get(), question, done](Result<std::string> answer) {
      all->erase(question);
      done(std::move(answer));
    });
  };
}

}  // namespace dlock::zookeeper
