#include "backends/redis/sentinel/sentinels.hpp"

#include <algorithm>
#include <utility>

#include "backends/redis/timing.hpp"

namespace dlock::redis {

namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::milliseconds patience{500};  // with one sentinel
constexpr std::chrono::seconds between_looks{1};
constexpr std::string_view switches = "+switch-master";
// Those that were not asked for so long say nothing any more about how many replicas there are.
constexpr std::chrono::minutes replicas_count_for{1};
// Sentinels look for replicas every ten seconds.
constexpr std::chrono::seconds fewer_replicas_after{15};
// After a failover every sentinel that can be reached knows of it within a few seconds, unless it is cut off.
constexpr std::chrono::minutes anew_after{1};

// What a connection to that sentinel is like.
Options options_at(const Options& of_client, const common::Host& host) {
  Options options = of_client;
  const SentinelOptions sentinel = *std::move(options.sentinel);
  options.sentinel.reset();
  options.any_role = true;
  options.host = host;
  options.user = sentinel.user;
  options.password = sentinel.password;
  options.password_file = sentinel.password_file;
  options.tls = sentinel.tls;
  options.db = 0;
  options.connect_timeout = patience;
  return options;
}

}  // namespace

// One of them, and the connection to it.
class Sentinels::Sentinel final : public common::ConnectionObserver {
 public:
  Sentinel(Sentinels& sentinels, SentinelId found, bool learned)
      : options(options_at(sentinels.options_, found.host)),
        id(std::move(found.id)),
        learnt(learned),
        sentinels_(sentinels) {}

  // No attempt to reach it is needed until it is asked again.
  void connected() override {}
  void broken(const Failure& /*why*/) override { sentinels_.retire(*this); }

  // That it lists fewer replicas than before counts after a while.
  void lists(std::uint32_t number, TimePoint now) {
    listed_at = now;
    if (number >= replicas) {
      replicas = number;
      fewer_since = TimePoint::max();
      return;
    }
    fewer_since = std::min(fewer_since, now);
    if (now < saturating_add(fewer_since, fewer_replicas_after)) return;
    replicas = number;
    fewer_since = TimePoint::max();
  }

  const Options options;
  std::string id;
  const bool learnt;
  std::unique_ptr<CommandClient> commands = nullptr;  // once it was asked
  int questions = 0;                                  // under way
  bool lost = false;                                  // it did not answer when it was asked last
  std::uint32_t replicas = 0;
  TimePoint listed_at = TimePoint::min();
  TimePoint fewer_since = TimePoint::max();

 private:
  Sentinels& sentinels_;
};

// What one sentinel answers.
struct Sentinels::Question {
  Result<common::Host> address = Failure{errc::unavailable, "no answer"};
  Result<ServiceState> state = Failure{errc::unavailable, "no answer"};
  std::vector<SentinelId> others;
  std::string id;
  int left = 0;  // answers to come
};

Sentinels::Sentinels(Executor& executor, Options options, WireFactory wires)
    : executor_(executor), options_(std::move(options)), wires_(std::move(wires)), look_timer_(executor) {
  for (const common::Host& host : options_.sentinel->hosts) add({host, {}}, false);
}

Sentinels::~Sentinels() = default;

// --- Which there are -------------------------------------------------------------------------------------------------

void Sentinels::add(const SentinelId& found, bool learnt) {
  const bool known = std::any_of(sentinels_.begin(), sentinels_.end(), [&](const auto& each) {
    return each->options.host == found.host || (!found.id.empty() && each->id == found.id);
  });
  if (known || sentinels_.size() >= most_sentinels) return;
  sentinels_.push_back(std::make_unique<Sentinel>(*this, found, learnt));
}

// Between questions: those that were learnt and do not answer, or are one of the URL's by another name.
void Sentinels::forget_lost_ones() {
  for (std::size_t i = sentinels_.size(); i-- > 0;) {
    Sentinel& each = *sentinels_[i];
    if (!each.learnt || each.questions > 0) continue;
    const bool twice = !each.id.empty() && std::any_of(sentinels_.begin(), sentinels_.end(), [&](const auto& other) {
      return other.get() != &each && other->id == each.id;
    });
    if ((!twice && !each.lost) || (subscriber_ && listens_at_ == i)) continue;
    retire(each);
    gone_sentinels_.push_back(std::move(sentinels_[i]));
    sentinels_.erase(sentinels_.begin() + static_cast<std::ptrdiff_t>(i));
    if (first_ > i) --first_;
    if (listens_at_ > i) --listens_at_;
  }
  first_ %= sentinels_.size();
}

// Its connection has ended, or is not worth keeping.
void Sentinels::retire(Sentinel& sentinel) {
  executor_.post(lifetime_.guard([this] {
    gone_.clear();
    gone_sentinels_.clear();
  }));
  if (sentinel.questions == 0) gone_.push_back(std::move(sentinel.commands));
}

// --- Asking ----------------------------------------------------------------------------------------------------------

void Sentinels::locate(Handler done) {
  // A caller that asks again so soon may have been told something wrong.
  const bool doubts = executor_.now() < saturating_add(located_at_, proof_time);
  askers_.push_back(std::move(done));
  if (asking_) return;
  if (doubts) first_ = (first_ + 1) % sentinels_.size();
  begin(first_);
}

// No caller waits for the answer. Each time another one is asked.
void Sentinels::look() {
  if (!master_) return;
  if (asking_) {
    again_ = true;  // that answer may be older
    return;
  }
  begin(next_look_++ % sentinels_.size());
}

void Sentinels::begin(std::size_t first) {
  asking_ = true;
  asked_from_ = first;
  asked_ = 0;
  failures_.clear();
  behind_.clear();
  best_.reset();
  ask_next();
}

void Sentinels::ask_next() {
  if (asked_ < sentinels_.size()) {
    const std::size_t index = (asked_from_ + asked_++) % sentinels_.size();
    return ask(*sentinels_[index], [this, index](const Question& question) { answered(index, question); });
  }
  if (best_) return found(*std::exchange(best_, std::nullopt));
  if (is_set_up_anew()) {
    Whereabouts said = *std::max_element(behind_.begin(), behind_.end(),
                                         [](const auto& a, const auto& b) { return a.epoch < b.epoch; });
    said.moves = true;
    return found(said);
  }
  conclude(nobody_knows());
}

// Most of those that should know do not know of the failover that we have seen, and it is not that they have yet to
// hear of it. Of those that were learnt only the ones that answer count.
bool Sentinels::is_set_up_anew() const {
  const auto counting = std::count_if(sentinels_.begin(), sentinels_.end(),
                                      [](const auto& each) { return !each->learnt || !each->lost; });
  return 2 * behind_.size() > static_cast<std::size_t>(counting) &&
         executor_.now() >= saturating_add(epoch_since_, anew_after);
}

void Sentinels::ask(Sentinel& sentinel, std::function<void(const Question&)> done) {
  if (!sentinel.commands) {
    sentinel.commands = std::make_unique<CommandClient>(executor_, sentinel.options, wires_, &sentinel);
  }
  ++sentinel.questions;
  const auto question = std::make_shared<Question>();
  const TimePoint deadline = saturating_add(executor_.now(), patience);
  const auto send = [&](Command command, auto take) {
    ++question->left;
    (void)sentinel.commands->request(
        std::move(command), deadline,
        [this, &sentinel, question, take, done](const Result<Reply>& reply, TimePoint) {
          take(*question, reply);
          if (--question->left == 0) settle(sentinel, *question, done);
        },
        About::locks);
  };
  const std::string& service = options_.sentinel->service;
  // The epoch before the address: should it change between the two, this is the address of a later epoch, not of an
  // earlier one.
  send({"SENTINEL", "MASTER", service}, [](Question& to, const Result<Reply>& reply) {
    to.state = reply.ok() ? read_service(reply.value()) : reply.failure();
  });
  send({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", service}, [](Question& to, const Result<Reply>& reply) {
    to.address = reply.ok() ? read_address(reply.value()) : reply.failure();
  });
  send({"SENTINEL", "SENTINELS", service}, [](Question& to, const Result<Reply>& reply) {
    if (reply.ok()) to.others = read_sentinels(reply.value());
  });
  send({"SENTINEL", "MYID"}, [](Question& to, const Result<Reply>& reply) {
    if (reply.ok() && reply.value().is(Reply::Type::string)) to.id = reply.value().text;
  });
}

void Sentinels::settle(Sentinel& sentinel, const Question& question, const std::function<void(const Question&)>& done) {
  --sentinel.questions;
  sentinel.lost = !question.address.ok() && question.address.failure().code == errc::unavailable;
  if (!question.id.empty()) sentinel.id = question.id;
  if (question.state.ok()) sentinel.lists(question.state.value().replicas, executor_.now());
  if (!question.address.ok()) retire(sentinel);
  done(question);
}

void Sentinels::refused(std::size_t index, Failure why) {
  const std::string name = sentinels_[index]->options.endpoint();
  if (!why.detail.starts_with(name)) why.detail = name + ": " + why.detail;
  failures_.push_back(std::move(why));
  ask_next();
}

void Sentinels::answered(std::size_t index, const Question& question) {
  if (!question.address.ok()) return refused(index, question.address.failure());
  // Without the right to ask for it, there is no epoch to compare, and every answer counts.
  const bool may_not_ask = !question.state.ok() && question.state.failure().code == errc::access_denied;
  if (!question.state.ok() && (!may_not_ask || options_.sentinel->all_replicas)) {
    return refused(index, question.state.failure());
  }
  for (const SentinelId& other : question.others) add(other, true);
  answered_at_ = executor_.now();
  Whereabouts said{.master = question.address.value(), .epoch = epoch_, .moves = may_not_ask, .sentinel = index};
  if (question.state.ok()) said.epoch = question.state.value().epoch;
  if (said.epoch < epoch_) {
    behind_.push_back(said);
    return refused(index, {errc::unavailable, "it does not know of the latest failover"});
  }
  said.moves = said.moves || said.epoch > epoch_;
  if (!best_ || said.epoch > best_->epoch) best_ = said;
  // How many replicas there are, each of them may know better.
  if (options_.sentinel->all_replicas && !askers_.empty()) return ask_next();
  found(*std::exchange(best_, std::nullopt));
}

void Sentinels::found(const Whereabouts& said) {
  if (said.epoch != epoch_) epoch_since_ = executor_.now();
  epoch_ = said.epoch;
  if (said.moves || !askers_.empty()) first_ = said.sentinel;
  listen_at(said.sentinel);
  const Lifetime::Watch life = lifetime_.watch();
  const common::Host master = said.master;
  if (said.moves || !master_) master_is(master);
  if (!life.over()) conclude(master);
}

void Sentinels::conclude(const Result<common::Host>& answer) {
  asking_ = false;
  if (!askers_.empty()) located_at_ = executor_.now();
  forget_lost_ones();
  const Lifetime::Watch life = lifetime_.watch();
  for (const Handler& asker : std::exchange(askers_, {})) {
    asker(answer);
    if (life.over()) return;
  }
  if (std::exchange(again_, false)) look();
}

// Final only where all of them say so: one that does not answer may know better.
Failure Sentinels::nobody_knows() const {
  const auto all = [this](errc code) {
    return std::all_of(failures_.begin(), failures_.end(), [code](const Failure& each) { return each.code == code; });
  };
  Failure why{errc::unavailable, "no sentinel knows the master: "};
  if (all(errc::invalid_argument)) {
    why = {errc::invalid_argument, "service_name: no sentinel knows such a service: "};
  } else if (all(errc::access_denied)) {
    why.code = errc::access_denied;
  }
  for (std::size_t i = 0; i < failures_.size(); ++i) why.detail += (i == 0 ? "" : "; ") + failures_[i].detail;
  return why;
}

// --- Moves -----------------------------------------------------------------------------------------------------------

void Sentinels::master_is(const common::Host& host) {
  if (master_ == host) return;
  master_ = host;
  const Lifetime::Watch life = lifetime_.watch();
  for (Follower* follower : std::vector<Follower*>(followers_.begin(), followers_.end())) {
    if (followers_.contains(follower)) follower->master_moved(host);
    if (life.over()) return;
  }
}

// At the sentinel that just answered, unless another one is listened to, or is about to be.
void Sentinels::listen_at(std::size_t index) {
  const TimePoint now = executor_.now();
  if (subscriber_) {
    if (subscriber_->is_forbidden() || subscribed_) return;
    if (listens_at_ == index || now < saturating_add(listens_since_, patience)) return;
  }
  listens_at_ = index;
  listens_since_ = now;
  subscribed_ = false;
  subscriber_ = std::make_unique<Subscriber>(executor_, sentinels_[index]->options, wires_, *this);
  subscriber_->subscribe(std::string(switches));
}

// It may have happened just before.
void Sentinels::on_subscribed(const std::string& /*channel*/) {
  subscribed_ = true;
  look();
}

// The one that answers now is listened to.
void Sentinels::on_lost(const std::string& /*channel*/) {
  subscribed_ = false;
  listens_since_ = TimePoint::min();
  look();
}

void Sentinels::on_message(const std::string& /*channel*/, const std::string& text) {
  subscriber_->proven();
  const auto to = switched_to(text, options_.sentinel->service);
  if (!to || master_ == to) return;
  // A sentinel that does not know of it says what was true before, now or in an answer that is under way.
  ++epoch_;
  epoch_since_ = executor_.now();
  first_ = listens_at_;  // it knows
  located_at_ = TimePoint::min();
  master_is(*to);
}

void Sentinels::in_use(const OwnerId& owner, nanoseconds time) {
  users_[owner] = saturating_add(executor_.now(), time);
  if (look_timer_.armed()) return;
  look();
  look_again();
}

void Sentinels::look_again() {
  look_timer_.arm(saturating_add(executor_.now(), between_looks), [this] {
    std::erase_if(users_, [now = executor_.now()](const auto& user) { return user.second <= now; });
    if (users_.empty()) return;
    look_again();
    if (!asking_) look();
  });
}

std::uint32_t Sentinels::replicas_wanted() const {
  std::uint32_t wanted = options_.replicas_ack;
  if (!options_.sentinel->all_replicas) return wanted;
  for (const auto& each : sentinels_) {
    if (answered_at_ < saturating_add(each->listed_at, replicas_count_for)) wanted = std::max(wanted, each->replicas);
  }
  return wanted;
}

// --- Administration --------------------------------------------------------------------------------------------------

void Sentinels::survey(std::function<void(std::vector<Said>)> done) {
  struct All {
    std::vector<Said> said = {};
    std::set<std::string> ids = {};
    std::size_t left = 0;
    std::function<void(std::vector<Said>)> done;
  };
  const auto all = std::make_shared<All>(All{.left = sentinels_.size(), .done = std::move(done)});
  for (const auto& sentinel : sentinels_) {
    ask(*sentinel, [all, host = sentinel->options.host](const Question& question) {
      Result<ServiceState> state = question.state;
      if (!question.address.ok()) {
        state = question.address.failure();
      } else if (state.ok()) {
        state.value().master = question.address.value();
      }
      // One may be known by two names.
      const bool twice = !question.id.empty() && !all->ids.insert(question.id).second;
      if (!twice) all->said.push_back({host, std::move(state)});
      if (--all->left == 0) all->done(std::move(all->said));
    });
  }
}

}  // namespace dlock::redis
