#include "backends/common/sql/schema.hpp"

#include <chrono>
#include <list>
#include <utility>

#include <dlock/duration.hpp>

namespace dlock::sql {

namespace {

constexpr std::chrono::milliseconds between_attempts(300);

}  // namespace

class Schema::SettingUp final : public std::enable_shared_from_this<SettingUp>, private Session::User {
 public:
  explicit SettingUp(Schema& owner)
      : owner_(owner),
        pause_(owner.executor_),
        session_(owner.executor_, owner.dialling_, {.word = "setup"}, Upkeep::once, *this) {}

  void add(TimePoint deadline, Backend::Handler<MadeTables> done) {
    const auto caller = callers_.emplace(callers_.end(), owner_.executor_, std::move(done));
    caller->timer.arm(deadline, [this, caller] { give_up(caller); });
  }

  void look(bool first) { take(owner_.steps_->look(first)); }

 private:
  struct Caller {
    Caller(Executor& executor, Backend::Handler<MadeTables> then) : done(std::move(then)), timer(executor) {}
    Backend::Handler<MadeTables> done;
    Timer timer;
  };

  // Without a deadline: once no caller waits, this object is destroyed.
  void take(SchemaSteps::Step step) {
    if (step.end) return step.end->ok() ? finish(*step.end) : fail(step.end->failure());
    const std::size_t count = step.commands.size();
    Query query{.commands = std::move(step.commands),
                .done = [this, count, read = std::move(step.read)](const Outcome& outcome, const Results& results) {
                  const auto self = shared_from_this();
                  if (outcome.problem != Problem::none) return refused(outcome);
                  if (results.size() != count) return fail({errc::protocol, "unexpected answer"});
                  take(read(results));
                }};
    (void)session_.request({.query = std::move(query), .blocks = step.blocks});
  }

  // Other clients may be creating or using the tables.
  void refused(const Outcome& outcome) {
    const Remedy remedy = owner_.dialling_.dialect.meaning_of(outcome).remedy;
    const bool again = remedy == Remedy::busy || remedy == Remedy::retry || remedy == Remedy::set_up;
    if (outcome.problem == Problem::refused && again && ++attempts_ < owner_.steps_->most_attempts()) {
      (void)session_.request({.query = {.commands = {{.text = "ROLLBACK"}}}});
      return pause_.arm(saturating_add(owner_.executor_.now(), between_attempts), [this] { look(false); });
    }
    Failure why = owner_.steps_->explain(owner_.dialling_.dialect.failure_of(outcome));
    // Each change may be repeated, so no outcome is unknown; and a busy schema does not mean that a lock is busy.
    if (why.code == errc::ambiguous || why.code == errc::timed_out) why.code = errc::unavailable;
    fail(std::move(why));
  }

  void fail(Failure why) {
    const std::string& endpoint = session_.server().endpoint;
    if (!endpoint.empty() && !why.detail.starts_with(endpoint)) why.detail = endpoint + ": " + why.detail;
    finish(std::move(why));
  }

  void finish(const Result<MadeTables>& result) {
    const auto self = shared_from_this();
    owner_.under_way_ = nullptr;
    const Lifetime::Watch life = owner_.lifetime_.watch();
    for (const Caller& caller : std::exchange(callers_, {})) {
      caller.done(result);
      if (life.over()) return;
    }
  }

  void give_up(std::list<Caller>::iterator caller) {
    const auto self = shared_from_this();
    const auto done = std::move(caller->done);
    (void)callers_.erase(caller);
    if (callers_.empty()) owner_.under_way_ = nullptr;
    if (!session_.ready() && session_.problem().code) return done(session_.problem());
    done(Failure{errc::unavailable, "schema " + owner_.name_ + " could not be set up in time"});
  }

  void session_ready() override {}
  // The handler of the request has the failure.
  void session_down(const Failure& /*why*/, bool /*was_ready*/) override {}

  Schema& owner_;
  std::list<Caller> callers_;
  int attempts_ = 0;
  Timer pause_;
  Session session_;
};

Schema::Schema(Executor& executor, const Dialling& dialling, std::string name, std::unique_ptr<SchemaSteps> steps)
    : executor_(executor), dialling_(dialling), name_(std::move(name)), steps_(std::move(steps)) {}

Schema::~Schema() = default;

void Schema::initialize(TimePoint deadline, Backend::Handler<MadeTables> done) {
  const bool first = under_way_ == nullptr;
  if (first) under_way_ = std::make_shared<SettingUp>(*this);
  under_way_->add(deadline, std::move(done));
  if (first) under_way_->look(true);
}

}  // namespace dlock::sql
