#include "tests/support/messages/connection.hpp"

namespace dlock::messages {

// A request and what became of it so far.
struct Connection::Exchange {
  Service service;
  Unanswered unanswered;
  Delivery delivery;
  bool over = false;                        // answered, or given up
  std::list<Timer>::iterator timeout = {};  // until it has ended
};

Connection::Connection(Executor& executor, std::shared_ptr<memory::MemoryStore> store, std::shared_ptr<Faults> faults,
                       std::string holder, std::chrono::nanoseconds response_timeout, Inbox& inbox)
    : executor_(executor),
      store_(std::move(store)),
      faults_(std::move(faults)),
      response_timeout_(response_timeout),
      holder_(std::move(holder)),
      inbox_(inbox),
      mailbox_(std::make_shared<Mailbox>()) {
  const util::MutexLock lock(mailbox_->mutex);
  mailbox_->connection = this;
}

Connection::~Connection() {
  {
    const util::MutexLock lock(mailbox_->mutex);
    mailbox_->connection = nullptr;
  }
  store_->kill(holder_, clock(), false);
  faults_->forget(this);
}

// --- Requests --------------------------------------------------------------------------------------------------------

void Connection::send(Operation operation, const OwnerId& owner, Service service, Unanswered unanswered) {
  const Delivery delivery = faults_->plan({operation, owner, holder()});
  if (delivery.fate == Delivery::Fate::refused) return unanswered({errc::unavailable, "the memory store was cut off"});

  const auto exchange = std::make_shared<Exchange>(Exchange{std::move(service), std::move(unanswered), delivery});
  exchange->timeout = schedule(saturating_add(executor_.now(), response_timeout_), [exchange] {
    exchange->over = true;
    exchange->unanswered({errc::ambiguous, "the memory store did not answer"});
  });
  if (delivery.duplicate) after(*delivery.duplicate, [this, exchange] { arrive(exchange); });
  if (delivery.fate == Delivery::Fate::arrives) {
    after(delivery.delay, [this, exchange] { arrive(exchange); });
  } else if (delivery.fate == Delivery::Fate::held) {
    faults_->hold(this, executor_, while_alive([this, exchange] { arrive(exchange); }));
  }
}

void Connection::arrive(const std::shared_ptr<Exchange>& exchange) {
  if (dead()) return;
  const Reply reply = exchange->service(*store_);
  if (exchange->delivery.reply_lost) return;
  after(exchange->delivery.reply_delay, [this, exchange, reply] {
    if (dead()) return;
    const bool in_time = !std::exchange(exchange->over, true);
    if (in_time) timers_.erase(exchange->timeout);
    reply(in_time);
  });
}

// --- News from the store ---------------------------------------------------------------------------------------------

memory::MemoryStore::OnAnswer Connection::notices_for(const LockRequest& request) {
  return [mailbox = mailbox_, kind = request.kind, name = request.name,
          owner = request.owner](const memory::MemoryStore::Answer& answer) {
    const util::MutexLock lock(mailbox->mutex);
    Connection* const to = mailbox->connection;
    if (to == nullptr) return;
    to->receive(owner, [to, kind, name, owner, answer] { to->inbox_.notified(kind, name, owner, answer); });
  };
}

memory::MemoryStore::OnChange Connection::notices_for(std::function<void()> changed) {
  return [mailbox = mailbox_, changed = std::move(changed)] {
    const util::MutexLock lock(mailbox->mutex);
    if (mailbox->connection != nullptr) mailbox->connection->receive(OwnerId(), changed);
  };
}

// Called with the store locked, on any thread: everything else happens in a task of this client.
void Connection::receive(const OwnerId& owner, Executor::Task news) {
  executor_.post(while_alive([this, owner, news = std::move(news)]() mutable {
    const Delivery delivery = faults_->plan({Operation::notice, owner, holder()});
    Executor::Task arrives = [this, news = std::move(news)] {
      if (!dead()) news();
    };
    if (delivery.fate == Delivery::Fate::arrives) {
      after(delivery.delay, std::move(arrives));
    } else if (delivery.fate == Delivery::Fate::held) {
      faults_->hold(this, executor_, while_alive(std::move(arrives)));
    }
  }));
}

// --- Helpers ---------------------------------------------------------------------------------------------------------

void Connection::after(std::chrono::nanoseconds delay, Executor::Task task) {
  if (delay <= std::chrono::nanoseconds::zero()) return task();
  (void)schedule(saturating_add(executor_.now(), delay), std::move(task));
}

std::list<Timer>::iterator Connection::schedule(TimePoint at, Executor::Task task) {
  timers_.emplace_front(executor_);
  const auto timer = timers_.begin();
  timer->arm(at, [this, timer, task = std::move(task)]() mutable {
    const Executor::Task due = std::move(task);
    timers_.erase(timer);
    due();
  });
  return timer;
}

Executor::Task Connection::while_alive(Executor::Task task) const {
  return lifetime_.guard(std::move(task));
}

}  // namespace dlock::messages
