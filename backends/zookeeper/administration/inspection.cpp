#include "backends/zookeeper/administration/inspection.hpp"

#include <optional>
#include <string_view>
#include <utility>

#include "backends/common/survey.hpp"
#include "backends/zookeeper/nodes/node_name.hpp"
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
  // Nobody is there any more to answer it, or to be told.
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

// --- One lock --------------------------------------------------------------------------------------------------------

void Inspection::look(const std::string& name, int attempts_left, Age age, SightHandler done) {
  const std::string path = lock_path(options_.prefix, name);
  if (!requests_.ready()) return done(unanswered_question(requests_.session().problem()));
  const auto sight = std::make_shared<Sight>();
  const auto trouble = std::make_shared<Failure>();
  // Both at once.
  const auto looked = [sight, trouble, path](const Outcome& outcome, const Handle::Node& node) {
    if (outcome.problem == Problem::no_node) return;
    if (outcome.problem != Problem::none) {
      *trouble = outcome.failure;
      return;
    }
    sight->exists = true;
    sight->looks_like_data = node.stat.owner == 0 && !node.data.empty();
    if (node.stat.owner == 0) return;
    sight->held = true;
    sight->holder_path = path;
    sight->holder = node;
  };
  if (age == Age::of_question) {
    requests_.get_latest(path, looked);
  } else {
    requests_.get(path, looked);
  }
  requests_.children(path, [this, name, sight, trouble, attempts_left, done = std::move(done)](
                               const Outcome& outcome, const std::vector<std::string>& children) {
    if (trouble->code) return done(unanswered_question(*trouble));
    if (outcome.problem == Problem::no_node || sight->held) return done(*sight);
    if (outcome.problem != Problem::none) return done(unanswered_question(outcome.failure));
    look_at_queue(name, *sight, children, attempts_left, done);
  });
}

void Inspection::look_at_queue(const std::string& name, Sight sight, const std::vector<std::string>& children,
                               int attempts_left, SightHandler done) {
  const std::string path = lock_path(options_.prefix, name);
  const Queue queue = judge_queue(options_.layout, path, children);
  if (queue.problem) return done(*queue.problem);
  sight.members = queue.members.size();
  const std::string first(queue.members.empty() ? std::string_view() : queue.first().node);
  if (!queue.semaphore) return look_at_holder(name, first, std::move(sight), attempts_left, std::move(done));
  if (!requests_.ready()) return done(unanswered_question(requests_.session().problem()));
  requests_.occupied_semaphore(path, [this, name, path, first, sight = std::move(sight), attempts_left,
                                      done = std::move(done)](const Outcome& outcome, std::string_view occupied) {
    if (outcome.problem != Problem::none) return done(unanswered_question(outcome.failure));
    if (!occupied.empty()) return done(foreign_child(path, occupied, semaphore_layout));
    look_at_holder(name, first, sight, attempts_left, done);
  });
}

// node: the first of the queue; empty where there is none.
void Inspection::look_at_holder(const std::string& name, const std::string& node, Sight sight, int attempts_left,
                                SightHandler done) {
  if (node.empty()) return done(std::move(sight));
  sight.exists = true;
  if (!requests_.ready()) return done(unanswered_question(requests_.session().problem()));
  sight.holder_path = lock_path(options_.prefix, name) + "/" + node;
  const std::string holder_path = sight.holder_path;
  requests_.get(holder_path, [this, name, sight = std::move(sight), attempts_left, done = std::move(done)](
                                 const Outcome& outcome, const Handle::Node& answer) mutable {
    if (outcome.problem == Problem::no_node && attempts_left > 1) {
      return look(name, attempts_left - 1, Age::of_session, done);
    }
    if (outcome.problem != Problem::none && outcome.problem != Problem::no_node) {
      return done(unanswered_question(outcome.failure));
    }
    sight.held = true;
    sight.holder = answer;
    done(std::move(sight));
  });
}

LockInfo Inspection::info_of(const std::string& name, const Sight& sight) const {
  LockInfo info{.name = name, .held = sight.held};
  if (sight.held) {
    // Foreign programs put anything there.
    const std::string& data = sight.holder.data;
    if (!util::problem_with_name(data) && data != request_to_let_go) info.holder = data;
    info.token = FencingToken(static_cast<std::uint64_t>(sight.holder.stat.created));
  }
  if (options_.strategy != Strategy::ephemeral) info.waiters = sight.members - (sight.members > 0 ? 1 : 0);
  return info;
}

void Inspection::inspect(const std::string& name, Backend::Handler<LockInfo> done) {
  const auto question = Question<LockInfo>::start(*this, std::move(done));
  when_ready(*question, [this, name, question] {
    look(name, max_attempts, Age::of_question, [this, name, question](Result<Sight> sight) {
      if (!sight.ok()) return question->answer(sight.failure());
      question->answer(info_of(name, sight.value()));
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

void Inspection::list(Backend::Handler<std::vector<LockInfo>> done) {
  const auto question = Question<std::vector<LockInfo>>::start(*this, std::move(done));
  const auto look_at = [this, question](const std::string& name, const common::Survey::Answer& answer) {
    if (question->answered()) return answer(Failure{errc::unavailable, "too late"});
    look(name, max_attempts, Age::of_session, [this, name, answer](Result<Sight> sight) {
      if (!sight.ok() && sight.failure().code != errc::protocol) return answer(sight.failure());
      if (!sight.ok()) return answer(std::optional<LockInfo>());  // of another layout, or no lock: not one of ours
      const Sight& what = sight.value();
      const bool there = what.held || (what.exists && !what.looks_like_data);
      answer(there ? std::optional(info_of(name, what)) : std::nullopt);
    });
  };
  when_ready(*question, [this, question, look_at] {
    requests_.children_latest(
        options_.prefix.empty() ? "/" : options_.prefix,
        [this, question, look_at](const Outcome& outcome, const std::vector<std::string>& children) {
          if (outcome.problem != Problem::none && outcome.problem != Problem::no_node) {
            return question->answer(unanswered_question(outcome.failure));
          }
          common::Survey::run(names_among(children), look_at,
                              [question](Result<std::vector<LockInfo>> all) { question->answer(std::move(all)); });
        });
  });
}

// --- Breaking --------------------------------------------------------------------------------------------------------

void Inspection::break_lock(const std::string& name, Backend::Handler<bool> done) {
  const auto question = Question<bool>::start(*this, std::move(done));
  when_ready(*question, [this, name, question] { break_one(name, max_attempts, question); });
}

void Inspection::break_one(const std::string& name, int attempts_left,
                           const std::shared_ptr<Question<bool>>& question) {
  look(name, max_attempts, Age::of_question, [this, name, attempts_left, question](Result<Sight> sight) {
    if (question->answered()) return;
    if (!sight.ok()) return question->answer(sight.failure());
    if (!sight.value().held) return question->answer(false);
    if (!requests_.ready()) return question->answer(unanswered_question(requests_.session().problem()));
    requests_.remove(sight.value().holder_path, [this, name, attempts_left, question](const Outcome& outcome) {
      if (outcome.problem == Problem::none) return question->answer(true);
      if (outcome.problem != Problem::no_node) return question->answer(outcome.failure);
      // It was released meanwhile, and somebody else may hold it.
      if (attempts_left > 1) return break_one(name, attempts_left - 1, question);
      question->answer(false);
    });
  });
}

// --- Forgetting ------------------------------------------------------------------------------------------------------

void Inspection::forget(const Forgetting& what, Backend::Handler<std::vector<std::string>> done) {
  if (what.name.empty()) {
    return done(
        Failure{errc::unsupported,
                "ZooKeeper does not know when the node of a lock was last used; name the locks to be forgotten"});
  }
  const auto question = Question<std::vector<std::string>>::start(*this, std::move(done));
  when_ready(*question, [this, name = what.name, question] { forget_one(name, max_attempts, question); });
}

void Inspection::forget_one(const std::string& name, int attempts_left,
                            const std::shared_ptr<Question<std::vector<std::string>>>& question) {
  look(name, max_attempts, Age::of_question, [this, name, attempts_left, question](Result<Sight> sight) {
    if (question->answered()) return;
    if (!sight.ok()) return question->answer(sight.failure());
    const Sight& what = sight.value();
    if (what.held || !what.exists) return question->answer(std::vector<std::string>());
    const std::string path = lock_path(options_.prefix, name);
    if (what.looks_like_data) {
      return question->answer(
          Failure{errc::protocol, "node " + util::quoted(path) + " holds data, so it is not a lock's"});
    }
    if (!requests_.ready()) return question->answer(unanswered_question(requests_.session().problem()));
    requests_.remove_childless(path, [this, name, attempts_left, question](const Outcome& outcome) {
      if (outcome.problem == Problem::none) return question->answer(std::vector<std::string>{name});
      if (outcome.problem == Problem::no_node) return question->answer(std::vector<std::string>());
      // Most likely somebody has come meanwhile.
      if (outcome.problem == Problem::other && attempts_left > 1) {
        return forget_one(name, attempts_left - 1, question);
      }
      question->answer(outcome.failure);
    });
  });
}

}  // namespace dlock::zookeeper
