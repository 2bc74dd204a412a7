#include "backends/zookeeper/administration/inspection.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "backends/common/survey.hpp"
#include "backends/zookeeper/nodes/node_name.hpp"
#include "backends/zookeeper/nodes/removals.hpp"
#include "backends/zookeeper/strategies/queue_walk.hpp"
#include "util/names.hpp"

namespace dlock::zookeeper {

namespace {

// The holder may go between the list and the look at it.
constexpr int max_attempts = 5;
// Curator's Revoker writes it over the holder's data, to ask for the lock.
constexpr std::string_view request_to_let_go = "__REVOKE__";

}  // namespace

class Inspection::AnyQuestion {
 public:
  explicit AnyQuestion(Executor& executor) : timer_(executor) {}
  AnyQuestion(const AnyQuestion&) = delete;
  AnyQuestion& operator=(const AnyQuestion&) = delete;
  virtual ~AnyQuestion() = default;
  virtual void fail(const Failure& why) = 0;
  // The inspection is destroyed: no answer will come, and the caller is not told.
  virtual void drop() { timer_.disarm(); }

 protected:
  Timer timer_;
};

// Answers once: by what was found, or at the deadline.
template <class T>
class Inspection::Question final : public AnyQuestion, public std::enable_shared_from_this<Question<T>> {
 public:
  Question(Inspection& inspection, Backend::Handler<T> done)
      : AnyQuestion(inspection.executor_), inspection_(inspection), done_(std::move(done)) {}

  [[nodiscard]] static std::shared_ptr<Question> start(Inspection& inspection, Backend::Handler<T> done) {
    auto question = std::make_shared<Question>(inspection, std::move(done));
    const TimePoint end = saturating_add(inspection.executor_.now(), inspection.options_.response_timeout);
    question->timer_.arm(end, [asked = question.get()] { asked->give_up(); });
    inspection.open_.insert(question);
    return question;
  }

  void answer(Result<T> result) {
    if (answered()) return;
    const auto self = this->shared_from_this();
    const auto done = std::exchange(done_, nullptr);
    timer_.disarm();
    inspection_.open_.erase(self);
    inspection_.waiting_.erase(this);
    done(std::move(result));
  }
  [[nodiscard]] bool answered() const noexcept { return !done_; }

  void fail(const Failure& why) override { answer(why); }
  void drop() override {
    AnyQuestion::drop();
    done_ = nullptr;
  }

 private:
  void give_up() {
    Failure why = inspection_.requests_.session().problem();
    if (!why.code) why.detail = "ZooKeeper did not answer in time";
    why.code = why.code == errc::access_denied ? errc::access_denied : errc::unavailable;
    answer(std::move(why));
  }

  Inspection& inspection_;
  Backend::Handler<T> done_;
};

Inspection::Inspection(Executor& executor, const Options& options, Requests& requests)
    : executor_(executor), options_(options), requests_(requests) {}

Inspection::~Inspection() {
  for (const auto& question : open_) question->drop();
}

void Inspection::when_ready(const AnyQuestion& question, std::function<void()> ask) {
  if (requests_.ready()) return ask();
  waiting_.emplace(&question, std::move(ask));
  requests_.session().want();
}

void Inspection::session_ready() {
  for (const auto& [question, ask] : std::exchange(waiting_, {})) when_ready(*question, ask);
}

void Inspection::session_refused(const Failure& why) {
  for (const auto& question : std::set(open_)) {
    if (open_.contains(question)) question->fail(why);
  }
}

// --- One lock --------------------------------------------------------------------------------------------------------

Inspection::Subject Inspection::subject(LockKind kind, const std::string& name) const {
  return {kind, name, lock_path(options_.prefix, name, kind)};
}

void Inspection::look(const Subject& lock, int attempts_left, Age age, SightHandler done) {
  if (!requests_.ready()) return done(unanswered_question(requests_.session().problem()));
  const auto sight = std::make_shared<Sight>();
  const auto trouble = std::make_shared<Failure>();
  // Both at once.
  const auto looked = [sight, trouble, path = lock.path](const Outcome& outcome, const Handle::Node& node) {
    if (outcome.problem == Problem::no_node) return;
    if (outcome.problem != Problem::none) {
      *trouble = outcome.failure;
      return;
    }
    sight->exists = true;
    sight->looks_like_data = node.stat.owner == 0 && !node.data.empty();
    if (node.stat.owner != 0) sight->holders.push_back({.path = path, .node = node});
  };
  if (age == Age::of_question) {
    requests_.get_latest(lock.path, looked);
  } else {
    requests_.get(lock.path, looked);
  }
  requests_.children(lock.path, [this, lock, sight, trouble, attempts_left, done = std::move(done)](
                                    const Outcome& outcome, const std::vector<std::string>& children) {
    if (trouble->code) return done(unanswered_question(*trouble));
    if (outcome.problem == Problem::no_node || sight->held()) return done(*sight);
    if (outcome.problem != Problem::none) return done(unanswered_question(outcome.failure));
    look_at_queue(lock, *sight, children, attempts_left, done);
  });
}

void Inspection::look_at_queue(const Subject& lock, Sight sight, const std::vector<std::string>& children,
                               int attempts_left, SightHandler done) {
  const Queue queue = judge_queue(options_.layout, lock.path, children, lock.kind);
  if (queue.problem) return done(*queue.problem);
  sight.members = queue.members.size();
  for (const Queue::Member& member : queue.holders()) {
    sight.exists = true;
    sight.permits = member.permits;
    sight.holders.push_back({.path = lock.path + "/" + std::string(member.node), .mode = member.mode});
  }
  if (!queue.semaphore) return look_at_holders(lock, std::move(sight), attempts_left, std::move(done));
  if (!requests_.ready()) return done(unanswered_question(requests_.session().problem()));
  requests_.occupied_semaphore(lock.path, [this, lock, sight = std::move(sight), attempts_left, done = std::move(done)](
                                              const Outcome& outcome, std::string_view occupied) {
    if (outcome.problem != Problem::none) return done(unanswered_question(outcome.failure));
    if (!occupied.empty()) return done(foreign_child(lock.path, occupied, semaphore_layout));
    look_at_holders(lock, sight, attempts_left, done);
  });
}

void Inspection::look_at_holders(const Subject& lock, Sight sight, int attempts_left, SightHandler done) {
  if (!sight.held()) return done(std::move(sight));
  if (!requests_.ready()) return done(unanswered_question(requests_.session().problem()));
  struct Look {
    Sight sight;
    Failure trouble;
    std::size_t left;
  };
  const std::size_t count = sight.holders.size();
  const auto look = std::make_shared<Look>(Look{std::move(sight), {}, count});
  const auto answered = [this, lock, look, attempts_left, done = std::move(done)] {
    if (look->trouble.code) return done(unanswered_question(look->trouble));
    looked_at_holders(lock, std::move(look->sight), attempts_left, done);
  };
  for (std::size_t i = 0; i < count; ++i) {
    requests_.get(look->sight.holders[i].path, [look, i, answered](const Outcome& outcome, const Handle::Node& node) {
      Holder& holder = look->sight.holders[i];
      holder.node = node;
      holder.gone = outcome.problem == Problem::no_node;
      if (outcome.problem != Problem::none && !holder.gone) look->trouble = outcome.failure;
      if (--look->left == 0) answered();
    });
  }
}

void Inspection::looked_at_holders(const Subject& lock, Sight sight, int attempts_left, const SightHandler& done) {
  // Those who were next may hold it by now.
  const bool all_gone =
      std::all_of(sight.holders.begin(), sight.holders.end(), [](const Holder& holder) { return holder.gone; });
  if (all_gone && attempts_left > 1) return look(lock, attempts_left - 1, Age::of_session, done);
  if (!all_gone) {
    sight.members -= std::erase_if(sight.holders, [](const Holder& holder) { return holder.gone; });
  }
  done(std::move(sight));
}

namespace {

// What the data of a node says of its owner; foreign programs put anything there.
std::string_view holder_in(std::string_view data, LockKind kind) {
  const bool more = kind == LockKind::election || kind == LockKind::semaphore;  // behind a line feed
  const std::string_view holder = data.substr(0, more ? data.find('\n') : std::string_view::npos);
  return util::problem_with_name(holder) || holder == request_to_let_go ? std::string_view() : holder;
}

}  // namespace

LockInfo Inspection::info_of(const Subject& lock, const Sight& sight) const {
  LockInfo info{.name = lock.name, .held = sight.held(), .kind = lock.kind};
  for (const Holder& each : sight.holders) {
    const std::string_view data = each.path == lock.path ? holder_of(each.node.data) : each.node.data;
    const std::string_view holder = holder_in(data, lock.kind);
    const FencingToken token(static_cast<std::uint64_t>(each.node.stat.created));
    if (lock.kind == LockKind::election && !holder.empty()) {
      set_holder(info, data);
    } else if (&each == &sight.holders.front()) {
      info.holder = holder;
    }
    info.token = std::max(info.token, token);
    if (lock.kind == LockKind::read_write || lock.kind == LockKind::semaphore) {
      info.holders.push_back({.holder = std::string(holder), .mode = each.mode, .token = token});
    }
  }
  if (lock.kind == LockKind::semaphore) info.permits = sight.permits;
  if (options_.strategy != Strategy::ephemeral) {
    info.waiters = sight.members - std::min(sight.members, sight.holders.size());
  }
  return info;
}

void Inspection::inspect(LockKind kind, const std::string& name, Backend::Handler<LockInfo> done) {
  const auto question = Question<LockInfo>::start(*this, std::move(done));
  when_ready(*question, [this, lock = subject(kind, name), question] {
    look(lock, max_attempts, Age::of_question, [this, lock, question](Result<Sight> sight) {
      if (!sight.ok()) return question->answer(sight.failure());
      question->answer(info_of(lock, sight.value()));
    });
  });
}

std::string Inspection::parent_of(LockKind kind) const {
  return options_.prefix.empty() ? "/" : kind_path(options_.prefix, kind);
}

void Inspection::ping(const std::string& name, Backend::Handler<bool> done) {
  const auto question = Question<bool>::start(*this, std::move(done));
  const auto look_at = [this, question, lock = subject(LockKind::lock, name)] {
    if (question->answered()) return;
    look(lock, max_attempts, Age::of_session, [question](const Result<Sight>& sight) {
      question->answer(sight.ok() ? Result<bool>(true) : Result<bool>(sight.failure()));
    });
  };
  when_ready(*question, [this, question, look_at] {
    requests_.children_latest(parent_of(LockKind::lock),
                              [question, look_at](const Outcome& outcome, const std::vector<std::string>&) {
                                if (outcome.problem == Problem::none || outcome.problem == Problem::no_node) {
                                  return look_at();
                                }
                                question->answer(unanswered_question(outcome.failure));
                              });
  });
}

// --- All locks -------------------------------------------------------------------------------------------------------

// The names below the prefix that locks may have.
std::vector<std::string> Inspection::names_among(const std::vector<std::string>& children) const {
  const bool root = options_.prefix.empty() && options_.chroot.empty();
  std::vector<std::string> names;
  for (const std::string& child : children) {
    if (root && child == "zookeeper") continue;  // ZooKeeper's own
    auto name = decode_name(child);
    if (name && !util::problem_with_name(*name)) names.push_back(*std::move(name));
  }
  return names;
}

void Inspection::list(LockKind kind, Backend::Handler<std::vector<LockInfo>> done) {
  const auto question = Question<std::vector<LockInfo>>::start(*this, std::move(done));
  const auto look_at = [this, kind, question](const std::string& name, const common::Survey::Answer& answer) {
    if (question->answered()) return answer(Failure{errc::unavailable, "too late"});
    const Subject lock = subject(kind, name);
    look(lock, max_attempts, Age::of_session, [this, lock, answer](Result<Sight> sight) {
      if (!sight.ok() && sight.failure().code != errc::protocol) return answer(sight.failure());
      if (!sight.ok()) return answer(std::optional<LockInfo>());  // of another layout, or no lock: not one of ours
      const Sight& what = sight.value();
      const bool there = what.held() || (what.exists && !what.looks_like_data);
      answer(there ? std::optional(info_of(lock, what)) : std::nullopt);
    });
  };
  when_ready(*question, [this, kind, question, look_at] {
    requests_.children_latest(
        parent_of(kind), [this, question, look_at](const Outcome& outcome, const std::vector<std::string>& children) {
          if (outcome.problem != Problem::none && outcome.problem != Problem::no_node) {
            return question->answer(unanswered_question(outcome.failure));
          }
          common::Survey::run(names_among(children), look_at,
                              [question](Result<std::vector<LockInfo>> all) { question->answer(std::move(all)); });
        });
  });
}

// --- Breaking --------------------------------------------------------------------------------------------------------

void Inspection::break_lock(LockKind kind, const std::string& name, Backend::Handler<bool> done) {
  const auto question = Question<bool>::start(*this, std::move(done));
  when_ready(*question, [this, lock = subject(kind, name), question] { break_one(lock, max_attempts, question); });
}

void Inspection::break_one(const Subject& lock, int attempts_left, const std::shared_ptr<Question<bool>>& question) {
  look(lock, max_attempts, Age::of_question, [this, lock, attempts_left, question](Result<Sight> sight) {
    if (question->answered()) return;
    if (!sight.ok()) return question->answer(sight.failure());
    if (!sight.value().held()) return question->answer(false);
    if (!requests_.ready()) return question->answer(unanswered_question(requests_.session().problem()));
    remove_holders(sight.value().holders, [this, lock, attempts_left, question](Result<bool> any) {
      // They were released meanwhile, and another client may hold it.
      if (any.ok() && !any.value() && attempts_left > 1) return break_one(lock, attempts_left - 1, question);
      question->answer(std::move(any));
    });
  });
}

// Answers whether any of them was there.
void Inspection::remove_holders(const std::vector<Holder>& holders, Backend::Handler<bool> done) {
  struct Removals {
    std::size_t left;
    bool any = false;
    Failure trouble = {};
  };
  const auto removed = [all = std::make_shared<Removals>(Removals{holders.size()}),
                        done = std::move(done)](const Outcome& outcome) {
    if (outcome.problem == Problem::none) all->any = true;
    if (outcome.problem != Problem::none && outcome.problem != Problem::no_node) all->trouble = outcome.failure;
    if (--all->left == 0) done(all->trouble.code ? Result<bool>(all->trouble) : Result<bool>(all->any));
  };
  for (const Holder& holder : holders) requests_.remove(holder.path, removed);
}

// --- Forgetting ------------------------------------------------------------------------------------------------------

void Inspection::forget(const Forgetting& what, Backend::Handler<std::vector<std::string>> done) {
  if (what.name.empty()) {
    return done(
        Failure{errc::unsupported,
                "ZooKeeper does not know when the node of a lock was last used; name the locks to be forgotten"});
  }
  const auto question = Question<std::vector<std::string>>::start(*this, std::move(done));
  when_ready(*question,
             [this, lock = subject(what.kind, what.name), question] { forget_one(lock, max_attempts, question); });
}

void Inspection::forget_one(const Subject& lock, int attempts_left,
                            const std::shared_ptr<Question<std::vector<std::string>>>& question) {
  look(lock, max_attempts, Age::of_question, [this, lock, attempts_left, question](Result<Sight> sight) {
    if (question->answered()) return;
    if (!sight.ok()) return question->answer(sight.failure());
    const Sight& what = sight.value();
    if (what.held() || !what.exists) return question->answer(std::vector<std::string>());
    if (what.looks_like_data) {
      return question->answer(
          Failure{errc::protocol, "node " + util::quoted(lock.path) + " holds data, so it does not belong to a lock"});
    }
    if (!requests_.ready()) return question->answer(unanswered_question(requests_.session().problem()));
    requests_.remove_childless(lock.path, [this, lock, attempts_left, question](const Outcome& outcome) {
      if (outcome.problem == Problem::none) return question->answer(std::vector<std::string>{lock.name});
      if (outcome.problem == Problem::no_node) return question->answer(std::vector<std::string>());
      // Most likely a client has come meanwhile.
      if (outcome.problem == Problem::other && attempts_left > 1) {
        return forget_one(lock, attempts_left - 1, question);
      }
      question->answer(outcome.failure);
    });
  });
}

}  // namespace dlock::zookeeper
