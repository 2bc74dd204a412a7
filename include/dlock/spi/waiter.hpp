// An acquire that waits, as a state machine: the Contention of a service that keeps its waiters in a queue, or that
// wakes them. It ignores late answers, remembers wake-ups that come meanwhile, backs off, and knows which failures end
// an acquire. For backend authors; TryBackend is built on it.
//
//   class MyContention final : public dlock::Waiter {
//    public:
//     ~MyContention() override { cancel(); }
//    private:
//     void resume() override {
//       start_request();
//       service_.enqueue(request(), on_answer([this](const dlock::Result<Place>& place) {
//         if (!place.ok()) return failed(place.failure());
//         if (place.value().first) return granted(grant_of(place.value()));
//         if (!request().wait) return busy();
//         wait(std::chrono::seconds(30));  // the service calls wake()
//       }));
//     }
//     void give_up() override { cleanup_.abandon(request(), late_requests_); }
//   };
//
//   stage       | waits for        | ends with
//   ------------+------------------+--------------------------------------------------------------------
//   no_session  | a usable session | session_ready(): resume()
//   requesting  | an answer        | wait(), granted(), busy(), failed(), ended() or retry_later()
//   backing_off | the pause        | its end, a wake-up or session_ready(): resume()
//   waiting     | a wake-up        | wake(): woken(); the time for a check: check()
//   done        | nothing          |
//
// A service that pushes a grant, not only a wake-up: in `waiting`, granted(); in any other stage, wake(), so that the
// next answer decides.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/backoff.hpp>
#include <dlock/spi/lifetime.hpp>

namespace dlock {

// In tasks only.
class Waiter : public Contention {
 public:
  // Sends the first request. Once, after the construction.
  virtual void start() { proceed(); }

  // The lock may have become free. If a request is in flight, its answer may be older: then wait() acts on it.
  void wake();

 protected:
  enum class Stage { no_session, requesting, backing_off, waiting, done };

  Waiter(Executor& executor, const LockRequest& request, GrantSink& sink,
         Backoff backoff = Backoff(std::chrono::seconds(2)));

  // --- What a backend implements ---

  // Sends the next request. Called only while may_send().
  virtual void resume() = 0;
  // After a wake-up, and when it is time to check whether one was lost. Default: resume().
  virtual void woken() { resume(); }
  virtual void check() { resume(); }
  // The acquire ends without the lock. Makes sure that this owner neither holds it nor waits for it, even if the
  // service carries out a request in flight later. Called once at most, when the stage is `done`.
  virtual void give_up() = 0;
  // The stage has changed, or another request starts. For what belongs to a stage, as a watch does. Default: no effect.
  virtual void entered(Stage /*stage*/) {}
  // Whether requests can be sent. If not, the backend must call proceed() later.
  [[nodiscard]] virtual bool may_send() { return true; }

  // The destructor of the class that implements give_up() calls this first.
  void cancel();

  // --- Requests ---

  // Enters `requesting`. Answers of earlier requests no longer count.
  void start_request();
  // Calls the handler unless the waiter was destroyed or has changed its stage or started a request since. A stage may
  // have several requests.
  template <class F>
  [[nodiscard]] auto on_answer(F handler) {
    return lifetime_.guard([this, round = round_, handler = std::move(handler)](auto&&... answer) {
      if (round == round_) handler(std::forward<decltype(answer)>(answer)...);
    });
  }
  // A function that calls wake() as long as the waiter exists.
  [[nodiscard]] auto waker() {
    return lifetime_.guard([this] { wake(); });
  }
  // resume(), if requests can be sent.
  void proceed();

  // --- What the answers lead to ---

  // Another owner holds the lock; only if the request waits. Reports it, and checks after that time, or never.
  void wait(std::chrono::nanoseconds check_after);
  static constexpr std::chrono::nanoseconds never = std::chrono::nanoseconds::max();
  void retry_later();  // backs off, then resume()
  // A request failed. errc::unavailable and errc::ambiguous are reported to a request that waits, which is retried
  // later; otherwise the acquire ends.
  void failed(const Failure& why);
  // The end: the lock is ours, busy (only if the request does not wait), or a failure.
  void granted(Grant grant);
  void busy();
  void ended(Failure why);

  [[nodiscard]] const LockRequest& request() const noexcept { return request_; }
  [[nodiscard]] GrantSink& sink() const noexcept { return sink_; }
  [[nodiscard]] Executor& executor() const noexcept { return executor_; }
  [[nodiscard]] Stage stage() const noexcept { return stage_; }
  // Changes the stage. Answers to earlier requests, and a task of run_after(), no longer have an effect.
  void enter(Stage stage);
  // Runs the task unless the stage changes or a request starts before. So it can also limit how long a request takes.
  void run_after(std::chrono::nanoseconds pause, Executor::Task task);

 private:
  Executor& executor_;
  const LockRequest request_;
  GrantSink& sink_;
  Stage stage_ = Stage::no_session;
  std::uint64_t round_ = 0;  // grows with each stage and request
  bool woken_ = false;       // while requesting
  Backoff backoff_;
  Timer timer_;
  Lifetime lifetime_;
};

class SessionWaiter;

// The waiters of a session, and what they need of it. In tasks only; outlives the waiters.
class SessionWaiters {
 public:
  SessionWaiters(const SessionWaiters&) = delete;
  SessionWaiters& operator=(const SessionWaiters&) = delete;

  // The session can be used. The waiters send their requests in the order of the acquires.
  void session_ready();
  // The connection was lost, but the session may still exist; or the first connection failed. A failure other than
  // unavailable and ambiguous ends the acquires.
  void session_suspended(const Failure& why);
  // The session ended, and with it the waiters' places in the service. Only if there was a session: the time limit of a
  // try begins anew.
  void session_lost(const Failure& why);

  [[nodiscard]] bool empty() const noexcept { return waiters_.empty(); }

 protected:
  SessionWaiters(Executor& executor, std::chrono::nanoseconds response_timeout)
      : executor_(executor), response_timeout_(response_timeout) {}
  ~SessionWaiters() = default;

  // Whether the session can be used now.
  [[nodiscard]] virtual bool session_usable() const = 0;
  // A waiter needs the session: connects, unless that is in progress.
  virtual void want_session() = 0;
  // Why the session cannot be used.
  [[nodiscard]] virtual Failure session_problem() const = 0;
  // The session's lease, and until when it is safe.
  [[nodiscard]] virtual std::chrono::nanoseconds session_lease() const = 0;
  [[nodiscard]] virtual TimePoint session_valid_until() const = 0;

 private:
  friend class SessionWaiter;
  template <class F>
  void for_each(F&& f);

  Executor& executor_;
  const std::chrono::nanoseconds response_timeout_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, SessionWaiter*> waiters_;  // by the order of the acquires
  Failure problem_;                                  // why no session is ready, once known
};

// A waiter whose place in the service belongs to a session. In tasks only.
class SessionWaiter : public Waiter {
 public:
  void start() override;

 protected:
  SessionWaiter(SessionWaiters& session, const LockRequest& request, GrantSink& sink);
  ~SessionWaiter() override;

  // The session ended: forgets the place in the service, and removes what may be left of it.
  virtual void place_lost() = 0;

  // False: waits for the session.
  [[nodiscard]] bool may_send() override;
  // The grant. nullopt: the session is not safe, and the waiter continues once it is.
  [[nodiscard]] std::optional<Grant> grant_of(FencingToken token);

 private:
  friend class SessionWaiters;
  void session_ready();
  void session_suspended(const Failure& why);
  void session_lost(const Failure& why);
  void wait_for_session();

  SessionWaiters& session_;
  const std::uint64_t id_;
};

}  // namespace dlock
