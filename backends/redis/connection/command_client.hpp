// Requests and their answers over one pipelined connection, where a blocking command delays all later answers.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/task.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/common/request_table.hpp"
#include "backends/redis/connection/command.hpp"
#include "backends/redis/connection/link.hpp"
#include "backends/redis/connection/reply.hpp"
#include "backends/redis/connection/script.hpp"
#include "backends/redis/connection/streams.hpp"
#include "backends/redis/options.hpp"

namespace dlock::redis {

// The reply, or what an error reply means, or why there is none: errc::unavailable if the request has had no effect,
// errc::ambiguous if it may have. And when the request was sent.
using CommandHandler = Callback<Result<Reply>, TimePoint>;

// Whether a request that still waits for the connection is sent when the client ends.
enum class AtTheEnd { dropped, sent };

// Whether an answer shows that the server serves locks. A proxy may answer a PING and hang up at the first script.
enum class About { locks, server };

struct CommandRequest {
  const Script* script = nullptr;  // if any
  Command words;                   // or what follows the script
  bool whole_script = false;       // sent as text, not by its hash
  AtTheEnd at_the_end = AtTheEnd::dropped;
  About about = About::locks;
  std::uint64_t end = 0;  // its end in the bytes of the connection
  CommandHandler done;    // empty: the answer is not wanted any more
};

// In tasks only.
class CommandClient final : private Link::User, private common::RequestTable<CommandRequest>::User {
 public:
  using Handler = CommandHandler;
  using RequestId = std::uint64_t;  // never 0

  // observer: nullptr for none.
  CommandClient(Executor& executor, const Options& options, StreamFactory streams,
                common::ConnectionObserver* observer);
  ~CommandClient();

  // The handler is called once, never inside the call. The answer is given up at the deadline; a server that does not
  // answer for the whole response timeout loses the connection.
  RequestId request(Command command, TimePoint deadline, Handler done, About about = About::server);
  // words: the number of keys, the keys, the arguments. whole: sends the script as text, because a retry after NOSCRIPT
  // would lack its ASKING.
  RequestId run(const Script& script, Command words, TimePoint deadline, Handler done,
                AtTheEnd at_the_end = AtTheEnd::dropped, bool whole = false);
  // The answer is not wanted any more: the handler is not called. True: the request was not sent and never will be. An
  // unknown id is ignored.
  bool withdraw(RequestId id) { return requests_.withdraw(id); }

  // Runs `answer` in a later task, unless this object has been destroyed.
  void answer_later(Task answer) { executor_.post(lifetime_.guard(std::move(answer))); }

  [[nodiscard]] Executor& executor() const noexcept { return executor_; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] bool idle() const noexcept { return requests_.waiting().empty() && requests_.under_way().empty(); }
  // Changes whenever a connection ends.
  [[nodiscard]] std::uint64_t connection_number() const noexcept { return connection_number_; }
  // Whether this user may query the server's role; while there is a connection.
  [[nodiscard]] bool knows_role() const noexcept { return link_.role_question() != RoleQuestion::none; }
  // A write succeeded on this connection: if it breaks, the next one is made without a pause.
  void proven() noexcept { link_.proven(); }
  // The connection may lead to the wrong server: replaces it, if there is one.
  void reconnect(Failure why);
  // Closes the connection until the next request, and fails the requests in flight and those that wait.
  void rest(const Failure& why);
  // Ends all activity; handlers are not called any more. If there is a connection, sends the requests of last_word(),
  // then those of AtTheEnd::sent that wait: an unresponsive server executes them when it recovers.
  void stop();
  // A request to send at the end, without a handler.
  void last_word(const Script& script, Command words);

 private:
  using Requests = common::RequestTable<CommandRequest>;
  using Request = CommandRequest;

  RequestId submit(Request request, TimePoint deadline);
  void append_bytes(std::string& out, Request& request);
  void send(Requests::Entry entry);
  void schedule_flush();
  void answered(Requests::Entry entry, Reply reply);
  void check_role();
  void answered_about_locks();

  void link_ready() override;
  void link_received(Reply reply) override;
  void link_drained() override;
  void link_down(const Failure& why, bool was_ready) override;
  void link_silent() override;

  void requests_catch_up() override;
  TimePoint requests_unresponsive() override;
  void requests_overdue(std::vector<Requests::Entry> sent, std::vector<Requests::Entry> unsent) override;

  Executor& executor_;
  const Options& options_;
  common::ConnectionObserver* const observer_;
  Requests requests_;
  std::vector<Request> last_words_;
  std::string bytes_;                   // of the request being sent; kept for its capacity
  std::set<const Script*> introduced_;  // to the server, on this connection
  bool delivering_ = false;             // during the replies of a read; requests made meanwhile are sent together
  bool flush_posted_ = false;
  std::uint64_t connection_number_ = 0;
  Timer role_timer_;
  bool reported_broken_ = false;
  Link link_;
  Lifetime lifetime_;
};

}  // namespace dlock::redis
