#include "backends/redis/sentinel/sentinels.hpp"

#include <algorithm>
#include <utility>

#include "backends/redis/timing.hpp"

namespace dlock::redis {

namespace {

constexpr std::chrono::milliseconds patience{500};  // with one sentinel
constexpr std::chrono::seconds between_looks{1};
constexpr std::size_t most_sentinels = 16;
// How long after a failover every sentinel that can be reached knows of it: they tell each other every two seconds.
constexpr std::chrono::seconds all_have_heard{10};
constexpr std::string_view switches = "+switch-master";

bool is_same(const common::Host& a, const common::Host& b) {
  return a.port == b.port && a.name == b.name;
}

// What a connection to that sentinel is like.
Options options_at(const Options& of_client, const common::Host& host) {
  Options options = of_client;
  const SentinelOptions sentinel = *std::move(options.sentinel);
  options.sentinel.reset();
  options.host = host;
  options.user = sentinel.user;
  options.password = sentinel.password;
  options.tls = sentinel.tls;
  options.db = 0;
  options.response_timeout = options.connect_timeout = patience;
  return options;
}

}  // namespace

struct Sentinels::Sentinel {
  Options options;
  std::unique_ptr<CommandClient> commands = nullptr;  // once it was asked
  int questions = 0;                                  // under way
};

// What one sentinel answers.
struct Sentinels::Question {
  Result<common::Host> address = Failure{errc::unavailable, "no answer"};
  Result<ServiceState> state = Failure{errc::unavailable, "no answer"};
  std::vector<common::Host> others;
  int left = 0;  // answers to come
};

Sentinels::Sentinels(Executor& executor, Options options, WireFactory wires)
    : executor_(executor), options_(std::move(options)), wires_(std::move(wires)), look_timer_(executor) {
  for (const common::Host& host : options_.sentinel->hosts) add(host);
}

Sentinels::~Sentinels() = default;

void Sentinels::add(const common::Host& host) {
  const bool known = std::any_of(sentinels_.begin(), sentinels_.end(),
                                 [&](const auto& sentinel) { return is_same(sentinel->options.host, host); });
  if (known || sentinels_.size() >= most_sentinels) return;
  sentinels_.push_back(std::make_unique<Sentinel>(Sentinel{options_at(options_, host)}));
}

// --- Asking ----------------------------------------------------------------------------------------------------------

void Sentinels::locate(Handler done) {
  // Whoever asks again so soon may have been told something wrong.
  const bool doubts = done && executor_.now() < saturating_add(located_at_, proof_time);
  if (done) askers_.push_back(std::move(done));
  if (std::exchange(asking_, true)) return;
  if (doubts) first_ = (first_ + 1) % sentinels_.size();
  asked_from_ = first_;
  asked_ = 0;
  failures_.clear();
  behind_.clear();
  ask_next();
}

void Sentinels::ask_next() {
  if (asked_ < sentinels_.size()) {
    const std::size_t index = (asked_from_ + asked_++) % sentinels_.size();
    return ask(*sentinels_[index], [this, index](const Question& question) { answered(index, question); });
  }
  // Most of them do not know of the failover that we have seen, and it is not that they have yet to hear of it: the
  // service was set up anew.
  if (behind_.size() > sentinels_.size() / 2 && executor_.now() >= saturating_add(epoch_since_, all_have_heard)) {
    return found(*std::max_element(behind_.begin(), behind_.end(),
                                   [](const auto& a, const auto& b) { return a.epoch < b.epoch; }));
  }
  conclude(nobody_knows());
}

void Sentinels::ask(Sentinel& sentinel, std::function<void(const Question&)> done) {
  if (!sentinel.commands) {
    sentinel.commands = std::make_unique<CommandClient>(executor_, sentinel.options, wires_, nullptr);
  }
  ++sentinel.questions;
  const auto question = std::make_shared<Question>();
  const TimePoint deadline = saturating_add(executor_.now(), patience);
  const auto send = [&](std::string_view what, auto take) {
    ++question->left;
    (void)sentinel.commands->request({"SENTINEL", what, options_.sentinel->service}, deadline,
                                     [this, &sentinel, question, take, done](const Result<Reply>& reply, TimePoint) {
                                       take(*question, reply);
                                       if (--question->left == 0) settle(sentinel, *question, done);
                                     });
  };
  send("GET-MASTER-ADDR-BY-NAME", [](Question& to, const Result<Reply>& reply) {
    to.address = reply.ok() ? read_address(reply.value()) : reply.failure();
  });
  send("MASTER", [](Question& to, const Result<Reply>& reply) {
    to.state = reply.ok() ? read_service(reply.value()) : reply.failure();
  });
  send("SENTINELS", [](Question& to, const Result<Reply>& reply) {
    if (reply.ok()) to.others = read_sentinels(reply.value());
  });
}

void Sentinels::settle(Sentinel& sentinel, const Question& question, const std::function<void(const Question&)>& done) {
  // Nobody need try to reach it until it is asked again.
  if (--sentinel.questions == 0 && !question.address.ok()) {
    gone_.push_back(std::move(sentinel.commands));
    executor_.post(lifetime_.guard([this] { gone_.clear(); }));
  }
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
  // Without the right to ask for it, there is no epoch to compare.
  if (!question.state.ok() && options_.sentinel->all_replicas) return refused(index, question.state.failure());
  Whereabouts said{.master = question.address.value(), .epoch = epoch_, .replicas = replicas_};
  if (question.state.ok()) {
    said.epoch = question.state.value().epoch;
    said.replicas = question.state.value().replicas;
  }
  if (said.epoch < epoch_) {
    behind_.push_back(said);
    return refused(index, {errc::unavailable, "it has not heard of the last failover"});
  }
  for (const common::Host& other : question.others) add(other);
  first_ = index;
  listen_at(index);
  found(said);
}

void Sentinels::found(const Whereabouts& said) {
  if (said.epoch != epoch_) epoch_since_ = executor_.now();
  epoch_ = said.epoch;
  replicas_ = said.replicas;
  const Lifetime::Watch life = lifetime_.watch();
  const common::Host master = said.master;
  master_is(master);
  if (!life.over()) conclude(master);
}

void Sentinels::conclude(const Result<common::Host>& answer) {
  asking_ = false;
  if (!askers_.empty()) located_at_ = executor_.now();
  const Lifetime::Watch life = lifetime_.watch();
  for (const Handler& asker : std::exchange(askers_, {})) {
    asker(answer);
    if (life.over()) return;
  }
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
  if (master_ && is_same(*master_, host)) return;
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
    if (subscriber_->is_forbidden() || subscriber_->hears(std::string(switches))) return;
    if (listens_at_ == index || now < saturating_add(listens_since_, patience)) return;
  }
  listens_at_ = index;
  listens_since_ = now;
  subscriber_ = std::make_unique<Subscriber>(executor_, sentinels_[index]->options, wires_, *this);
  subscriber_->subscribe(std::string(switches));
}

// It may have happened just before.
void Sentinels::subscribed(const std::string& /*channel*/) {
  subscriber_->proven();
  if (master_ && !asking_) locate(nullptr);
}

void Sentinels::message(const std::string& /*channel*/, const std::string& text) {
  const auto to = switched_to(text, options_.sentinel->service);
  if (!to || (master_ && is_same(*master_, *to))) return;
  // Who has not heard of it says what was true before, now or in an answer that is under way.
  ++epoch_;
  epoch_since_ = executor_.now();
  first_ = listens_at_;  // it knows
  located_at_ = TimePoint::min();
  master_is(*to);
}

void Sentinels::in_use_for(std::chrono::nanoseconds time) {
  in_use_until_ = std::max(in_use_until_, saturating_add(executor_.now(), time));
  if (!look_timer_.armed()) look_again();
}

std::uint32_t Sentinels::replicas_wanted() const noexcept {
  return options_.sentinel->all_replicas ? std::max(options_.replicas_ack, replicas_) : options_.replicas_ack;
}

void Sentinels::look_again() {
  look_timer_.arm(saturating_add(executor_.now(), between_looks), [this] {
    if (executor_.now() >= in_use_until_) return;
    look_again();
    if (!asking_) locate(nullptr);
  });
}

// --- Administration --------------------------------------------------------------------------------------------------

void Sentinels::survey(std::function<void(std::vector<Said>)> done) {
  struct All {
    std::vector<Said> said = {};
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
      all->said.push_back({host, std::move(state)});
      if (--all->left == 0) all->done(std::move(all->said));
    });
  }
}

}  // namespace dlock::redis
