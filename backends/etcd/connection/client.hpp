// Calls to the cluster, over one connection to one of its members. If the connection breaks or the member cannot serve,
// the client connects to the next one; each client shuffles the members.
//
// Each call has "hasleader", so that a member without a majority refuses it at once instead of not answering.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <dlock/error.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/result.hpp>
#include <dlock/spi/task.hpp>

#include "backends/common/reconnect.hpp"
#include "backends/common/request_table.hpp"
#include "backends/etcd/connection/failures.hpp"
#include "backends/etcd/connection/member.hpp"
#include "backends/etcd/options.hpp"
#include "backends/etcd/wire/messages.hpp"

namespace dlock::etcd {

// The answer and when the call was sent. Without an answer: errc::unavailable if the call has had no effect,
// errc::ambiguous if it may have had one, or the failure that the member reports.
using CallHandler = Callback<Result<std::string>, TimePoint>;

struct CallRequest {
  std::string_view method;
  std::string request;
  bool repeated = false;      // after a new login, or because the member did not begin it
  std::int64_t revision = 0;  // the cluster's highest known one when the call was sent
  CallHandler done;           // empty: the call was given up
};

// In tasks only.
class Client final : private Member::Events, private common::RequestTable<CallRequest>::User {
 public:
  class User {
   public:
    // There is a connection: streams can be opened.
    virtual void client_ready() = 0;
    // The login was repeated: streams can be opened again.
    virtual void client_logged_in() = 0;
    // A member served a request about locks.
    virtual void client_answered() {}
    // The connection and its streams ended, or no member accepted one. The client retries, except after a final
    // refusal: then it waits for want(). in_order: the member closed a connection that had lasted, as proxies close
    // idle ones. The client reconnects at once, and reports separately if that fails.
    virtual void client_down(const Failure& why, bool in_order) = 0;
    // The members belong to a different cluster than before, or their cluster lost acknowledged data.
    virtual void cluster_changed() = 0;

   protected:
    ~User() = default;
  };
  // Messages of both sides, for as long as the connection lasts.
  class Stream {
   public:
    virtual void stream_message(std::string_view message) = 0;
    // The member ended it; the connection continues.
    virtual void stream_ended(const GrpcStatus& status) = 0;

   protected:
    ~Stream() = default;
  };

  Client(Executor& executor, const Options& options, MemberFactory members, User& user);
  ~Client();

  // Connects, and keeps the connection up.
  void want() { reconnect_.want(); }
  // There is a connection. While its login is repeated, requests wait.
  [[nodiscard]] bool ready() const noexcept { return reconnect_.is_ready(); }
  // The reason why it is not ready.
  [[nodiscard]] Failure problem() const;

  // If the member allows no more concurrent calls: whether a call waits for its turn, or is sent before those that
  // wait.
  enum class Turn { in_order, first };

  // Calls the handler once, never inside the call. The client gives the answer up at the deadline. If a member does not
  // answer within the response timeout, the client leaves it. method: a constant.
  void call(std::string_view method, std::string request, TimePoint deadline, CallHandler done,
            Turn turn = Turn::in_order);
  void call(const Transaction& transaction, TimePoint deadline, Callback<Result<TransactionAnswer>> done,
            Turn turn = Turn::in_order);
  // The response timeout from now.
  [[nodiscard]] TimePoint answer_by() const { return saturating_add(executor_.now(), options_.response_timeout); }

  // 0: there is no connection, its login is being repeated, or it accepts no more calls. Try again after client_ready()
  // or client_logged_in(). The stream outlives its number.
  [[nodiscard]] CallId open_stream(std::string_view method, Stream& stream);
  void send(CallId stream, std::string_view message);
  void close_stream(CallId stream);

  // Goes to the next member.
  void leave_member(Failure why);
  // The member does not know the token any more.
  void login_again();
  // Authentication is off in the cluster, so user and password of the URL have no effect.
  [[nodiscard]] bool login_is_off() const noexcept { return login_is_off_; }
  // Ends all activity; no handler is called any more.
  void stop();

  [[nodiscard]] Executor& executor() const noexcept { return executor_; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }

 private:
  // The id of a request that was sent is the number of its call.
  using Requests = common::RequestTable<CallRequest>;

  void connect();
  void log_in();
  void logged_in(const std::string& answer, const GrpcStatus& status);
  void become_ready();
  [[nodiscard]] bool may_send() const noexcept { return ready() && login_ == 0; }
  void send_waiting();
  void send(Requests::Entry entry);
  void schedule_flush();
  void answered(Requests::Entry entry, std::optional<std::string> message, const GrpcStatus& status);
  // Whether the answer is from the cluster of earlier answers.
  [[nodiscard]] bool is_same_cluster(const Header& header, const CallRequest& request);
  // In a later task.
  void leave_later(Failure why);
  // Once the member, which accepts no more calls, has answered those in flight.
  void leave_closing_member();
  void break_off(Failure why, bool in_order = false);
  void down(Failure why, bool orderly = false);
  // A proxy closes idle connections after the same time each time.
  void learn_idle_limit();
  void keep_busy();
  template <class Entries>
  void fail(const Entries& entries, const Failure& why);
  [[nodiscard]] std::string here() const { return hosts_.front().to_string(); }

  void member_opened() override;
  void member_event(Grpc::Event event) override;
  void member_drained() override;
  void member_closed(Failure why, bool orderly) override;

  void requests_catch_up() override;
  TimePoint requests_unresponsive() override;
  void requests_overdue(std::vector<Requests::Entry> sent, std::vector<Requests::Entry> unsent) override;

  Executor& executor_;
  const Options& options_;
  const MemberFactory members_;
  User& user_;
  Requests requests_;
  common::Reconnect reconnect_;
  std::vector<common::Host> hosts_;  // the one in front is connected to
  std::size_t failed_hosts_ = 0;     // since the last connection
  Timer connect_timer_;
  std::unique_ptr<Member> member_;
  std::optional<Lifetime> connection_;  // of the tasks that concern this connection
  Grpc::Metadata metadata_;             // of each call
  CallId login_ = 0;                    // the login in flight
  bool login_is_off_ = false;
  TimePoint ready_since_;
  TimePoint last_traffic_;
  std::chrono::nanoseconds last_idle_{};   // before the member closed the previous connection; 0: unknown
  std::chrono::nanoseconds idle_limit_{};  // 0: unknown
  Timer idle_timer_;
  std::uint64_t cluster_ = 0;                         // 0: unknown
  std::int64_t revision_ = 0;                         // the highest one
  bool is_verified_ = false;                          // an answer on this connection came from that cluster
  bool is_foreign_ = false;                           // an answer on this connection came from a different one
  std::size_t foreign_connections_ = 0;               // consecutive connections to a different cluster
  std::unordered_map<CallId, std::string> messages_;  // of calls that have not ended
  std::unordered_map<CallId, Stream*> streams_;
  bool delivering_ = false;  // during the events of a read; requests made meanwhile are sent together
  bool flush_posted_ = false;
  Lifetime lifetime_;
};

}  // namespace dlock::etcd
