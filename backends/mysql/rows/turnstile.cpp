#include "backends/mysql/rows/turnstile.hpp"

#include <algorithm>
#include <utility>

#include <dlock/duration.hpp>

namespace dlock::mysql {

using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

// A wait in the server ends after this time, and begins anew at the end of the queue.
constexpr nanoseconds shortest_slice = seconds(30);
constexpr nanoseconds longest_slice = seconds(60);
// The server ends the place of a client that is dead or unreachable after this time.
constexpr nanoseconds lease_of_place = seconds(10);
// A connection costs the server a thread.
constexpr nanoseconds longest_free = seconds(10);

}  // namespace

class Turnstile::Place final : private sql::Session::User {
 public:
  explicit Place(Turnstile& turnstile)
      : turnstile_(turnstile),
        executor_(turnstile.services_.host.executor()),
        free_timer_(executor_),
        session_(executor_, turnstile.services_.dialling, {.word = "waiting", .session_lease = lease_of_place},
                 sql::Upkeep::once, *this) {}

  [[nodiscard]] bool is_free() const noexcept { return state_ == State::free; }
  [[nodiscard]] bool is_first() const noexcept { return state_ == State::first; }
  [[nodiscard]] std::uint64_t session() const noexcept {
    return static_cast<std::uint64_t>(session_.server().backend_pid);
  }

  void wait(const std::string& name) {
    name_ = name;
    state_ = State::queued;
    free_timer_.disarm();
    const sql::Dialling& dialling = turnstile_.services_.dialling;
    const nanoseconds slice = random_between(shortest_slice, longest_slice, executor_);
    request(turnstile_.rows_.wait(name_, slice), slice + dialling.connect_timeout + dialling.response_timeout);
  }
  void leave() {
    state_ = State::leaving;
    request(turnstile_.rows_.leave(name_), turnstile_.services_.dialling.response_timeout);
  }
  void close() { session_.stop(); }

 private:
  enum class State { free, queued, first, leaving };

  void request(sql::Command command, nanoseconds patience) {
    (void)session_.request({.query = {.commands = {std::move(command)},
                                      .done = [this](const sql::Outcome& outcome,
                                                     const sql::Results& results) { answered(outcome, results); }},
                            .deadline = saturating_add(executor_.now(), patience),
                            .blocks = state_ == State::queued});
  }
  void answered(const sql::Outcome& outcome, const sql::Results& results) {
    if (outcome.problem != sql::Problem::none) return turnstile_.is_over(*this);
    if (state_ == State::leaving) {
      state_ = State::free;
      free_timer_.arm(saturating_add(executor_.now(), longest_free), [this] { turnstile_.is_over(*this); });
      return turnstile_.place_is_left();
    }
    if (!results.front().flag(0, 0)) return wait(name_);
    state_ = State::first;
    turnstile_.became_first(name_);
  }

  void session_ready() override {}
  [[nodiscard]] bool session_holds() const override { return false; }  // no lock is lost with it
  void session_down(const Failure& /*why*/, bool /*was_ready*/) override { turnstile_.is_over(*this); }

  Turnstile& turnstile_;
  Executor& executor_;
  State state_ = State::free;
  std::string name_;
  Timer free_timer_;
  sql::Session session_;  // destroyed first: it calls nothing any more
};

// An acquire that waits. Only those use a place: a newcomer comes behind them.
class Turnstile::Waiter final : public Watch {
 public:
  Waiter(Turnstile& turnstile, const OwnerId& owner, std::unique_ptr<Watch> watch)
      : turnstile_(turnstile), owner_(owner), watch_(std::move(watch)) {}
  ~Waiter() override { turnstile_.waiters_.erase(owner_); }

 private:
  Turnstile& turnstile_;
  const OwnerId owner_;
  const std::unique_ptr<Watch> watch_;
};

Turnstile::Turnstile(const sql::Services& services, const RowCommands& rows, std::size_t max_places)
    : services_(services),
      rows_(rows),
      max_places_(max_places),
      watchers_(services.host.executor(), [this](const std::string& name) { nobody_waits_for(name); }),
      again_(services.host.executor()) {}

Turnstile::~Turnstile() = default;

// --- Waiters ---------------------------------------------------------------------------------------------------------

bool Turnstile::has_bells() {
  const sql::ServerInfo& server = services_.commands.server();
  if (!server.pooled) return true;
  if (!std::exchange(warned_, true)) {
    services_.host.warn(
        {.name = "",
         .reason = {errc::unsupported, server.endpoint + ": there is a proxy in front of the server, so waiters are "
                                                         "not woken when a lock is released; they poll instead"}});
  }
  return false;
}

std::unique_ptr<Watch> Turnstile::watch(const std::string& name, const OwnerId* waiter, std::function<void()> changed) {
  if (waiter == nullptr || !has_bells()) return nullptr;
  auto watch = watchers_.watch(name, std::move(changed));
  waiters_.insert_or_assign(*waiter, name);
  queue_up(name);
  return std::make_unique<Waiter>(*this, *waiter, std::move(watch));
}

void Turnstile::trying(sql::RowRequest& acquire) {
  if (!waiters_.contains(acquire.owner)) return;
  const auto place = places_.find(acquire.name);
  if (place != places_.end() && place->second->is_first()) acquire.place = place->second->session();
}

void Turnstile::taken(const std::string& name, const OwnerId& owner) {
  watchers_.taken(name);
  const auto place = places_.find(name);
  if (place == places_.end() || !place->second->is_first() || !waiters_.contains(owner)) return;
  kept_.insert_or_assign(owner, std::move(place->second));
  places_.erase(place);
  if (watchers_.count(name) > 1) queue_up(name);  // one is this owner's
}

void Turnstile::left(const OwnerId& owner) {
  if (auto kept = kept_.extract(owner)) leave(std::move(kept.mapped()));
}

void Turnstile::nobody_waits_for(const std::string& name) {
  without_place_.erase(name);
  auto place = places_.extract(name);
  if (!place) return;
  place.mapped()->is_first() ? leave(std::move(place.mapped())) : close(std::move(place.mapped()));
}

// --- Places ----------------------------------------------------------------------------------------------------------

void Turnstile::queue_up(const std::string& name) {
  if (places_.contains(name)) return;
  const auto free = std::find_if(free_.begin(), free_.end(), [](const PlacePtr& place) { return place->is_free(); });
  const bool full = places_.size() + kept_.size() + free_.size() >= max_places_;
  if ((free == free_.end() && full) || again_.armed()) return (void)without_place_.insert(name);
  without_place_.erase(name);
  PlacePtr& place = places_[name];
  if (free == free_.end()) {
    place = std::make_unique<Place>(*this);
  } else {
    place = std::move(*free);
    free_.erase(free);
  }
  place->wait(name);
}

void Turnstile::became_first(const std::string& name) {
  backoff_.reset();
  watchers_.tell_first(name);
}

void Turnstile::place_is_left() {
  if (!without_place_.empty()) queue_up(std::string(*without_place_.begin()));
}

void Turnstile::leave(PlacePtr place) {
  place->leave();
  free_.push_back(std::move(place));
}

void Turnstile::close(PlacePtr place) {
  place->close();
  over_.push_back(std::move(place));
  services_.host.executor().post(lifetime_.guard([this] {
    over_.clear();
    place_is_left();
  }));
}

// The bell ended with the session: a waiter of another client may get it first.
void Turnstile::is_over(Place& place) {
  const auto is_place = [&place](const auto& item) { return item.second.get() == &place; };
  if (const auto queued = std::find_if(places_.begin(), places_.end(), is_place); queued != places_.end()) {
    without_place_.insert(queued->first);
    close(std::move(queued->second));
    places_.erase(queued);
  } else if (const auto kept = std::find_if(kept_.begin(), kept_.end(), is_place); kept != kept_.end()) {
    close(std::move(kept->second));
    kept_.erase(kept);
  } else {
    const auto free =
        std::find_if(free_.begin(), free_.end(), [&](const PlacePtr& each) { return each.get() == &place; });
    if (free == free_.end()) return;
    close(std::move(*free));
    free_.erase(free);
  }
  if (without_place_.empty() || again_.armed()) return;
  Executor& executor = services_.host.executor();
  again_.arm(saturating_add(executor.now(), backoff_.next(executor)), [this] {
    for (const std::string& name : std::set<std::string>(without_place_)) queue_up(name);
  });
}

}  // namespace dlock::mysql
