#include "torture/worker/contender.hpp"

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include <dlock/error.hpp>
#include <dlock/read_write_lock.hpp>
#include <dlock/semaphore.hpp>

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// After held() was false, the loss was signalled, or is soon; if not, the history shows that.
constexpr auto wait_for_loss = 3s;
// The interval at which a wait without a limit checks whether the run has ended.
constexpr auto look_at_day = 20ms;
// The shortest time after which a wait is cancelled: some before the service has answered, some after a long wait.
constexpr auto shortest_wait = 1ms;
// The percentage of readers among the acquires of a read-write lock.
constexpr std::uint64_t readers = 60;
constexpr auto longest_wait = 3s;

// A flag that a callback sets and a thread waits for.
class Signal {
 public:
  void set() {
    const std::scoped_lock lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  // False: the time has passed, or a stop was requested.
  bool wait_for(nanoseconds limit, const std::stop_token& stop = {}) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, stop, limit, [&] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool set_ = false;
};

std::string word_of(const std::error_code& code) {
  if (code == errc::timed_out) return "timed out";
  if (code == errc::cancelled) return "cancelled";
  if (code == errc::unavailable) return "unavailable";
  if (code == errc::ambiguous) return "ambiguous";
  return code.message();
}

}  // namespace

Contender::Contender(const Plan& plan, const Client& client, const Board& board, HistoryFile& history, std::size_t seat,
                     std::atomic<std::uint64_t>& attempts)
    : plan_(plan),
      client_(client),
      board_(board),
      history_(history),
      seat_(seat),
      attempts_(attempts),
      dice_(plan.seed * 1000 + seat),
      resource_(plan.resource) {}

void Contender::run() {
  while (!board_.day_is_over()) turn();
  board_.reach(seat_, Step::idle);
}

void Contender::note(const Turn& turn, Kind kind, Event event) {
  if (event.at == TimePoint()) event.at = LeaseClock::now();
  event.kind = kind;
  event.process = plan_.process;
  event.attempt = turn.attempt;
  event.lock = plan_.locks[turn.lock];
  event.lock_kind = plan_.lock_kind;
  event.mode = turn.mode;
  history_.note(event);
}

void Contender::rest(nanoseconds least, nanoseconds most) {
  std::this_thread::sleep_for(dice_.between(least, most));
}

Contender::Turn Contender::plan_turn() {
  Turn turn{.lock = dice_.below(plan_.locks.size()),
            .mode = plan_.lock_kind == LockKind::read_write && dice_.chance(readers) ? Mode::shared : Mode::exclusive,
            .attempt = ++attempts_,
            .options = {},
            .cancel_after = {}};
  const auto style = dice_.below(100);
  if (style < 20) {
    turn.options.wait = 0s;
  } else if (style < 60) {
    turn.options.wait = dice_.of_any_size(shortest_wait, longest_wait);
  } else {
    turn.options.wait = forever;
    if (style < 80) turn.cancel_after = dice_.of_any_size(shortest_wait, longest_wait);
  }
  if (plan_.fixed_leases && dice_.chance(15)) {
    turn.options.lease = plan_.lease;
    turn.options.renew = false;
  }
  return turn;
}

void Contender::turn() {
  Turn turn = plan_turn();
  board_.seat(seat_).lock.store(static_cast<std::uint32_t>(turn.lock));
  board_.reach(seat_, Step::asking);
  auto lease = acquire(turn);
  if (lease) {
    work_under(turn, *std::move(lease));
    rest(0ms, 2ms);
  } else {
    rest(1ms, 20ms);
  }
  board_.reach(seat_, Step::idle);
}

Lease Contender::acquire(const Turn& turn, const AcquireOptions& options, std::error_code& ec) {
  const std::string& name = plan_.locks[turn.lock];
  if (plan_.lock_kind == LockKind::semaphore) return client_.make_semaphore(name, plan_.permits).acquire(options, ec);
  if (plan_.lock_kind != LockKind::read_write) return client_.make_lock(name).acquire(options, ec);
  ReadWriteLock lock = client_.make_read_write_lock(name);
  return turn.mode == Mode::shared ? lock.acquire_shared(options, ec) : lock.acquire(options, ec);
}

std::optional<Lease> Contender::acquire(const Turn& turn) {
  const bool limited = turn.options.wait != forever;
  std::stop_source cancel;
  Signal done;
  AcquireOptions options = turn.options;
  std::jthread canceller;
  const TimePoint asked = LeaseClock::now();
  note(turn, Kind::asked,
       {.at = asked,
        .permits = plan_.permits,
        .until = limited ? saturating_add(asked, turn.options.wait.value()) : TimePoint::max()});
  if (!limited) {
    options.cancel = cancel.get_token();
    canceller = std::jthread([&] {
      const TimePoint at = turn.cancel_after ? saturating_add(asked, *turn.cancel_after) : TimePoint::max();
      while (!board_.day_is_over() && LeaseClock::now() < at) {
        if (done.wait_for(look_at_day)) return;
      }
      note(turn, Kind::cancelled);
      cancel.request_stop();
    });
  }
  std::error_code ec;
  Lease lease = acquire(turn, options, ec);
  const TimePoint answered = LeaseClock::now();
  if (!ec) {
    note(turn, Kind::granted, {.at = answered, .token = lease.token(), .until = lease.valid_until()});
  }
  done.set();
  if (canceller.joinable()) canceller.join();
  if (!ec) return lease;
  note(turn, Kind::denied,
       {.at = answered, .word = turn.options.wait == 0s && ec == errc::timed_out ? "busy" : word_of(ec)});
  return std::nullopt;
}

void Contender::work_under(const Turn& turn, Lease lease) {
  Signal loss;
  board_.reach(seat_, Step::granted);
  bool held = true;
  {
    const std::stop_callback on_loss(lease.lost(), [&] {
      note(turn, Kind::lost);
      loss.set();
    });
    const TimePoint until = saturating_add(
        LeaseClock::now(), dice_.chance(2) ? dice_.between(0ms, plan_.lease * 5 / 4) : dice_.between(0ms, 5ms));
    do {
      held = step_under(turn, lease);
      if (held && loss.wait_for(dice_.between(0ms, 2ms))) break;
    } while (held && LeaseClock::now() < until && !board_.day_is_over());
    if (!held) (void)loss.wait_for(wait_for_loss);  // if there was none, the history shows that
    board_.reach(seat_, Step::releasing);
  }
  give_back(turn, lease);
}

bool Contender::step_under(const Turn& turn, const Lease& lease) {
  board_.reach(seat_, Step::looking);
  const TimePoint before = LeaseClock::now();
  const bool held = lease.held();
  note(turn, Kind::looked, {.at = held ? before : LeaseClock::now(), .yes = held});
  if (!held) return false;
  board_.reach(seat_, Step::looked);
  if (plan_.lock_kind == LockKind::semaphore) return true;  // permits protect no resource
  note(turn, Kind::writing, {.token = lease.token()});
  const bool taken = resource_.access(turn.lock, turn.mode, lease.token());
  note(turn, Kind::wrote, {.yes = taken});
  board_.reach(seat_, Step::wrote);
  return true;
}

void Contender::give_back(const Turn& turn, Lease& lease) {
  note(turn, Kind::releasing);
  if (dice_.chance(15)) {
    lease = Lease();
    return note(turn, Kind::unreleased, {.word = "left to the destructor"});
  }
  std::error_code ec;
  const bool was_ours = lease.release(ec);
  if (ec) {
    note(turn, Kind::unreleased, {.word = word_of(ec)});
  } else {
    note(turn, Kind::released, {.yes = was_ours});
  }
}

}  // namespace dlock::torture
