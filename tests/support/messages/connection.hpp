// One client's way to the store: messages that may be delayed, lost or repeated, as between a client and a server.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/memory/memory_store.hpp"
#include "tests/support/messages/faults.hpp"
#include "util/mutex.hpp"

namespace dlock::messages {

// In tasks only.
class Connection final {
 public:
  // Where news from the store arrive, as tasks.
  class Inbox {
   public:
    Inbox() = default;
    Inbox(const Inbox&) = delete;
    Inbox& operator=(const Inbox&) = delete;
    // A waiting owner was granted the lock, or is the first in line.
    virtual void notified(LockKind kind, const std::string& name, const OwnerId& owner,
                          const memory::MemoryStore::Answer& answer) = 0;

   protected:
    ~Inbox() = default;
  };

  Connection(Executor& executor, std::shared_ptr<memory::MemoryStore> store, std::shared_ptr<Faults> faults,
             std::string holder, std::chrono::nanoseconds response_timeout, Inbox& inbox);
  ~Connection();

  [[nodiscard]] Executor& executor() const noexcept { return executor_; }
  [[nodiscard]] const Clock& clock() const noexcept { return executor_.clock(); }
  [[nodiscard]] memory::MemoryStore& store() const noexcept { return *store_; }
  [[nodiscard]] const std::string& holder() const noexcept { return holder_; }
  // For the store: send what it reports to the inbox, or as a message that makes the client call `changed`.
  [[nodiscard]] memory::MemoryStore::OnAnswer notices_for(const LockRequest& request);
  [[nodiscard]] memory::MemoryStore::OnChange notices_for(std::function<void()> changed);

  // Nothing arrives any more, in either direction.
  [[nodiscard]] bool dead() const { return faults_->killed(holder_); }

  // Has the store carry out call(store, parameters). done(parameters, result) is told the outcome once, `late` what
  // arrives after that; errc::ambiguous means that the response timeout has passed and the request may yet take effect.
  template <class Parameters, class Call, class Done, class Late>
  void request(Operation operation, const OwnerId& owner, const Parameters& parameters, Call call, Done done,
               Late late) {
    using Value = std::invoke_result_t<Call, memory::MemoryStore&, const Parameters&>;
    // Copies: the request may still be under way when the caller's objects are gone.
    send(
        operation, owner,
        [parameters, call, done, late](memory::MemoryStore& store) -> Reply {
          return [parameters, value = call(store, parameters), done, late](bool in_time) {
            if (in_time) {
              done(parameters, Result<Value>(value));
            } else {
              late(parameters, value);
            }
          };
        },
        [parameters, done](Failure why) { done(parameters, Result<Value>(std::move(why))); });
  }
  template <class Parameters, class Call, class Done>
  void request(Operation operation, const OwnerId& owner, const Parameters& parameters, Call call, Done done) {
    request(operation, owner, parameters, std::move(call), std::move(done), [](const auto&, const auto&) {});
  }

 private:
  using Reply = std::function<void(bool in_time)>;             // runs at the client
  using Service = std::function<Reply(memory::MemoryStore&)>;  // runs at the store
  using Unanswered = std::function<void(Failure why)>;         // runs at the client
  struct Exchange;

  void send(Operation operation, const OwnerId& owner, Service service, Unanswered unanswered);
  void arrive(const std::shared_ptr<Exchange>& exchange);
  void receive(const OwnerId& owner, Executor::Task news);
  void after(std::chrono::nanoseconds delay, Executor::Task task);
  std::list<Timer>::iterator schedule(TimePoint at, Executor::Task task);
  [[nodiscard]] Executor::Task while_alive(Executor::Task task) const;

  // The store may still report to a client that is gone.
  struct Mailbox {
    util::Mutex mutex;  // after the store's
    Connection* connection DLOCK_GUARDED_BY(mutex);
  };

  Executor& executor_;
  const std::shared_ptr<memory::MemoryStore> store_;
  const std::shared_ptr<Faults> faults_;
  const std::chrono::nanoseconds response_timeout_;
  const std::string holder_;
  Inbox& inbox_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::list<Timer> timers_;  // what is under way, handlers included, ends with the connection
  Lifetime lifetime_;
};

}  // namespace dlock::messages
