// srvr, one of ZooKeeper's four-letter words: a server tells about itself, over a connection of its own and without a
// session. It is the one word that servers answer unless their setting 4lw.commands.whitelist says otherwise.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/common/stream.hpp"
#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

// A question under way. Destroying it means that the answer is not wanted. In tasks only.
class FourLetterQuestion final : private common::Stream::Events {
 public:
  using Handler = std::function<void(Result<std::string>)>;

  // Calls done once, later, as a task. It may destroy the question.
  FourLetterQuestion(Executor& executor, const Host& host, TimePoint deadline, Handler done);
  FourLetterQuestion(const FourLetterQuestion&) = delete;
  FourLetterQuestion& operator=(const FourLetterQuestion&) = delete;
  ~FourLetterQuestion();

 private:
  void opened() override;
  void received(std::string_view bytes) override;
  void drained() override {}
  void closed(Failure why, bool orderly) override;

  [[nodiscard]] Failure broken(const std::string& why) const;
  void finish(Result<std::string> answer);

  const std::string name_;  // of the server
  Handler done_;
  Timer timer_;
  std::string text_;
  std::optional<common::Stream> stream_;
};

}  // namespace dlock::zookeeper
