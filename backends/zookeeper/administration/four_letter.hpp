// ZooKeeper's four-letter words: a server tells about itself, over a connection of its own and without a session.
// Which words it answers is its setting 4lw.commands.whitelist; by default srvr alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/backend.hpp>
#include <dlock/executor.hpp>

#include "backends/common/stream.hpp"
#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

// A question under way. Destroying it means that nobody wants the answer. In tasks only.
class FourLetterQuestion final : private common::Stream::Events {
 public:
  struct Answer {
    std::string text;
    std::string our_address;  // numeric, as the server sees us
  };
  using Handler = std::function<void(Result<Answer>)>;

  // Calls done once, later, as a task. It may destroy the question.
  FourLetterQuestion(Executor& executor, const Host& host, std::string_view word, TimePoint deadline, Handler done);
  FourLetterQuestion(const FourLetterQuestion&) = delete;
  FourLetterQuestion& operator=(const FourLetterQuestion&) = delete;
  ~FourLetterQuestion();

 private:
  void opened() override;
  void received(std::string_view bytes) override;
  void drained() override {}
  void closed(Failure why, bool orderly) override;

  [[nodiscard]] Failure broken(const std::string& why) const;
  void finish(Result<Answer> answer);

  const std::string name_;  // of the server
  const std::string word_;
  Handler done_;
  Timer timer_;
  std::string text_;
  std::optional<common::Stream> stream_;
};

// --- What the answers say; no I/O ------------------------------------------------------------------------------------

struct ServerStatus {
  std::string version;  // "3.8.0"
  std::string mode;     // "standalone", "leader", "follower", "observer", "read-only"
  std::optional<std::uint64_t> connections;
};

// Of srvr. nullopt: no such answer, for instance because the server has lost its ensemble.
[[nodiscard]] std::optional<ServerStatus> read_srvr(std::string_view text);
// Whether the server does not answer this word.
[[nodiscard]] bool is_refusal(std::string_view text) noexcept;
// Of mntr ("zk_followers\t2") and conf ("maxClientCnxns=60").
[[nodiscard]] std::optional<std::uint64_t> read_number(std::string_view text, std::string_view key);
// Of cons: how many connections come from an address, which is numeric.
[[nodiscard]] std::size_t count_connections(std::string_view text, std::string_view address);

}  // namespace dlock::zookeeper
