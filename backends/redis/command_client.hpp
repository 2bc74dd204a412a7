// Requests and their answers over one pipelined connection. Nothing that blocks the connection may be asked here.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <dlock/backend.hpp>
#include <dlock/executor.hpp>
#include <dlock/lifetime.hpp>

#include "backends/redis/link.hpp"
#include "backends/redis/options.hpp"
#include "backends/redis/reply.hpp"
#include "backends/redis/scripts.hpp"
#include "backends/redis/wire.hpp"

namespace dlock::redis {

// In tasks only.
class CommandClient final : private Link::User {
 public:
  class Observer {
   public:
    Observer() = default;
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;
    virtual void connected() = 0;
    virtual void broken(const Failure& why) = 0;

   protected:
    ~Observer() = default;
  };

  // The reply, or what an error reply means, or why there is none: errc::unavailable if the request has had no effect,
  // errc::ambiguous if it may have. And when the request was sent.
  using Handler = std::function<void(Result<Reply> reply, TimePoint sent)>;
  using RequestId = std::uint64_t;  // never 0

  // observer: nullptr for none.
  CommandClient(Executor& executor, const Options& options, WireFactory wires, Observer* observer);
  ~CommandClient();

  // The handler is called once, never inside the call. The answer is given up at the deadline; a server that does not
  // answer for the whole response timeout loses the connection.
  RequestId request(std::vector<std::string> command, TimePoint deadline, Handler done);
  RequestId run(const Script& script, std::vector<std::string> keys, std::vector<std::string> arguments,
                TimePoint deadline, Handler done);
  // Nobody wants the answer any more: the handler is not called. True: the request was not sent and never will be. An
  // unknown id is ignored.
  bool withdraw(RequestId id);

  [[nodiscard]] Executor& executor() const noexcept { return executor_; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] bool idle() const noexcept { return waiting_.empty() && in_flight_.empty(); }
  // The server of this connection does what clients need: it takes writes.
  void proven() noexcept { link_.proven(); }
  // The connection, if it stands, leads to the wrong server, or may: makes another.
  void reconnect(Failure why);
  // For good; handlers are not called any more.
  void stop();

 private:
  struct Request {
    RequestId id = 0;
    const Script* script = nullptr;  // if any
    std::vector<std::string> words;  // the command, or what follows the script
    bool whole_script = false;       // the server does not know it by its hash
    TimePoint deadline;              // for the caller
    TimePoint sent;                  // once it is
    std::uint64_t end = 0;           // where it ends among the bytes of the connection
    Handler done;                    // empty: nobody waits for the answer any more
  };

  RequestId submit(Request request);
  void send(Request request);
  void schedule_flush();
  void arm(TimePoint at);
  void check_deadlines();
  void fail_overdue(TimePoint now);
  void answered(Request request, Reply reply);

  void link_ready() override;
  void link_received(Reply reply) override;
  void link_drained() override;
  void link_down(const Failure& why, bool was_ready) override;
  void link_silent() override;

  Executor& executor_;
  const Options& options_;
  Observer* const observer_;
  std::map<RequestId, Request> waiting_;  // for the connection
  std::deque<Request> in_flight_;         // in the order in which the replies will come
  std::set<const Script*> introduced_;    // to the server, on this connection
  RequestId next_id_ = 1;
  bool delivering_ = false;  // replies are being handed out; what is asked meanwhile goes out in one piece
  bool flush_posted_ = false;
  TimePoint armed_for_ = TimePoint::max();
  Timer timer_;
  Link link_;
  Lifetime lifetime_;
};

}  // namespace dlock::redis
