// Calls to the cluster, over one connection to one of its members. When that breaks, or the member cannot serve, the
// next one is connected to, in an order that each client draws by itself.
//
// Each call says "hasleader": a member that has lost the others then refuses at once, instead of being silent.
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

// The answer, or why there is none: errc::unavailable if the call has had no effect, errc::ambiguous if it may have, or
// what the member says. And when it was sent.
using CallHandler = Callback<Result<std::string>, TimePoint>;

struct CallRequest {
  std::string_view method;
  std::string request;
  bool repeated = false;      // after another login, or because the member did not begin it
  std::int64_t revision = 0;  // the cluster's highest one that was known when it was sent
  CallHandler done;           // empty: it was given up
};

// In tasks only.
class Client final : private Member::Events, private common::RequestTable<CallRequest>::User {
 public:
  class User {
   public:
    User() = default;
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    // A connection stands: streams can be opened.
    virtual void client_ready() = 0;
    // The login was repeated: streams can be opened again.
    virtual void client_logged_in() = 0;
    // A member carried out a request about locks on it.
    virtual void client_answered() {}
    // It is gone, with its streams; or no member accepted one. Attempts go on by themselves, unless the
    // reason is final: then only when it is wanted again. in_order: the member closed a connection that had lasted, as
    // proxies do with idle ones. The next attempt begins at once; if it fails, that is reported in its turn.
    virtual void client_down(const Failure& why, bool in_order) = 0;
    // The members are of a different cluster than before, or their cluster lost what it had acknowledged.
    virtual void cluster_changed() = 0;

   protected:
    ~User() = default;
  };
  // Messages both ways for as long as the connection stands.
  class Stream {
   public:
    Stream() = default;
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    virtual void stream_said(std::string_view message) = 0;
    // By the member; the connection stands.
    virtual void stream_ended(const GrpcStatus& status) = 0;

   protected:
    ~Stream() = default;
  };

  Client(Executor& executor, const Options& options, MemberFactory members, User& user);
  ~Client();

  // It is needed: connects, and stays connected.
  void want() { reconnect_.want(); }
  // A connection stands. While its login is repeated, requests wait.
  [[nodiscard]] bool ready() const noexcept { return reconnect_.is_ready(); }
  // Why it is not.
  [[nodiscard]] Failure problem() const;

  // Whether a call waits for its turn if the member allows no more of them at a time, or goes ahead of those that do.
  enum class Turn { in_order, first };

  // The handler is called once, never inside the call. The answer is given up at the deadline; a member that does not
  // answer for the whole response timeout loses the connection. method: a constant.
  void call(std::string_view method, std::string request, TimePoint deadline, CallHandler done,
            Turn turn = Turn::in_order);
  // The same, with its answer read.
  void call(const Transaction& transaction, TimePoint deadline, Callback<Result<TransactionAnswer>> done);
  // Within the response timeout.
  [[nodiscard]] TimePoint answer_by() const { return saturating_add(executor_.now(), options_.response_timeout); }

  // 0: there is no connection, its login is being repeated, or it takes no more; they can be later. The stream
  // outlives its number.
  [[nodiscard]] CallId open_stream(std::string_view method, Stream& stream);
  void send(CallId stream, std::string_view message);
  void close_stream(CallId stream);

  // This member does not do: to the next one, if it is still that connection.
  void leave_member(Failure why);
  // The member knows our token no more.
  void login_again();
  // The members have authentication switched off: the user and password of the URL are of no use.
  [[nodiscard]] bool login_is_off() const noexcept { return login_is_off_; }
  // For good; handlers are not called any more.
  void stop();

  [[nodiscard]] Executor& executor() const noexcept { return executor_; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }

 private:
  using Requests = common::RequestTable<CallRequest>;
  struct Answer {
    Requests::Id request;
    std::optional<std::string> message = std::nullopt;
  };

  void connect();
  void choose_host();
  void log_in();
  void logged_in(GrpcStatus status);
  void become_ready();
  [[nodiscard]] bool may_send() const noexcept { return ready() && login_ == 0; }
  [[nodiscard]] bool has_room() const noexcept { return may_send() && member_->room() > 0; }
  void send_waiting();
  void send(Requests::Entry entry);
  void schedule_flush();
  void answered(Requests::Entry entry, std::optional<std::string> message, const GrpcStatus& status);
  void succeeded(Requests::Entry& entry, std::optional<std::string> message, bool about_locks);
  // Whether an answer is of the cluster that earlier ones were of. If not, another member is tried.
  [[nodiscard]] bool is_ours(const Header& header, const CallRequest& request);
  void leave_later(Failure why);
  // It takes no more calls: those that it has taken are answered first.
  void leave_closing_member();
  void break_off(Failure why, bool in_order = false);
  void down(Failure why, bool orderly = false);
  // A proxy that closes idle connections does so after the same time each time.
  void learn_idle_limit();
  void keep_busy();
  template <class Entries>
  void fail(const Entries& entries, const Failure& why);
  [[nodiscard]] std::string here() const;

  void member_opened() override;
  void member_said(CallId call, std::string message) override;
  void member_ended(CallId call, GrpcStatus status) override;
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
  std::size_t failed_hosts_ = 0;     // since a connection stood
  Timer connect_timer_;
  std::unique_ptr<Member> member_;
  std::uint64_t connection_ = 0;  // its number
  Grpc::Metadata metadata_;       // of each call
  CallId login_ = 0;
  std::string token_;
  bool login_is_off_ = false;
  TimePoint ready_since_;
  TimePoint last_traffic_;
  std::chrono::nanoseconds last_idle_{};   // before the member closed the last connection; 0: unknown
  std::chrono::nanoseconds idle_limit_{};  // 0: none is known
  Timer idle_timer_;
  std::uint64_t cluster_ = 0;   // 0: unknown
  std::int64_t revision_ = 0;   // the highest one
  bool is_verified_ = false;    // an answer on this connection was of our cluster
  std::size_t strangers_ = 0;   // connections in a row that were to another one
  std::uint64_t stranger_ = 0;  // the last of them
  std::unordered_map<CallId, Answer> answers_;
  std::unordered_map<CallId, Stream*> streams_;
  bool delivering_ = false;  // answers are being handed out; what is asked meanwhile goes out in one piece
  bool flush_posted_ = false;
  Lifetime lifetime_;
};

}  // namespace dlock::etcd
