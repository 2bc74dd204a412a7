#include "backends/postgres/schema/schema.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "backends/postgres/schema/schema_state.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/sqlstate.hpp"

namespace dlock::postgres {

namespace {

// A client that does not take the lock was faster each time, or another held it for seconds each time.
constexpr int max_attempts = 10;

// BEGIN, the timeouts and the lock.
constexpr std::size_t before_creation = 4;
constexpr std::chrono::milliseconds between_attempts(300);

}  // namespace

//   look -> version -> (create -> record ->) (extend -> look again ...) finished
//    ^                   |         |           |
//    +-- other client ---+---------+-----------+
class Schema::SettingUp final : public std::enable_shared_from_this<SettingUp>, private Session::User {
 public:
  using Made = std::vector<std::string>;

  explicit SettingUp(Schema& owner)
      : owner_(owner),
        timer_(owner.executor_),
        pause_(owner.executor_),
        session_(owner.executor_, owner.dialling_, {.word = "setup"}, Upkeep::once, *this) {}

  void start() { look(); }

  // extends: the tables that an older dlock has made, too.
  void add(TimePoint deadline, bool extends, Done done) {
    callers_.push_back({deadline, std::move(done)});
    extends_ = extends_ || extends;
    arm();
  }

 private:
  struct Caller {
    TimePoint deadline;
    Done done;
  };
  using Reader = void (SettingUp::*)(const Results&);

  // --- What is there ---

  void look() { ask({rights(), tables()}, false, &SettingUp::looked); }

  void looked(const Results& results) {
    state_ = read_schema_state(results[0], results[1]);
    const TableState* const meta = state_.table("meta");
    if (auto problem = problem_with_others()) return fail(*std::move(problem));
    const bool readable = meta != nullptr && meta->may_select && state_.may_use;
    // What is not dlock's has no version.
    if (readable && !problem_with_tables(schema(), {.tables = {*meta}})) {
      return ask({{.statement = &owner_.statements_.version}}, false, &SettingUp::read_version);
    }
    judge(false);
  }

  void read_version(const Results& results) {
    const auto version = results[0].number(0, 0);
    if (version) {
      if (auto problem = problem_with_version(schema(), *version)) return fail(*std::move(problem));
    }
    judge(version.has_value());
  }

  void judge(bool has_version) {
    if (auto problem = problem_with_tables(schema(), state_)) return fail(*std::move(problem));
    if (auto problem = problem_with_rights(schema(), state_)) return fail(*std::move(problem));
    const TableState* const meta = state_.table("meta");
    const bool may_have_version = has_version || (meta != nullptr && !meta->may_select);
    if (!state_.exists || !state_.missing().empty() || !may_have_version) return create();
    extend();
  }

  // --- What is missing ---

  void create() {
    std::vector<Command> commands = texts(creation(schema(), owner_.options_.durability, !state_.exists));
    // Only now that no other client makes any, it is known who made what.
    const auto before = commands.begin() + static_cast<std::ptrdiff_t>(before_creation);
    (void)commands.insert(before, {rights(), tables()});
    (void)commands.insert(commands.end(), {rights(), tables()});
    ask(std::move(commands), true, &SettingUp::created);
  }

  // What is not right is rolled back with the end of the session.
  void created(const Results& results) {
    const SchemaState before = read_schema_state(results[before_creation], results[before_creation + 1]);
    state_ = read_schema_state(results[results.size() - 2], results.back());
    if (auto problem = problem_with_tables(schema(), state_)) return fail(*std::move(problem));
    if (auto problem = problem_with_others()) return fail(*std::move(problem));
    const auto missing = state_.missing();
    if (!missing.empty()) {
      return fail(
          {errc::invalid_argument, qualified(schema(), missing.front()) + " is not a table; use another schema"});
    }
    const Made made = made_between(schema(), owner_.options_.durability, before, state_);
    made_.insert(made_.end(), made.begin(), made.end());
    std::vector<Command> commands = texts(end_of_creation(schema()));
    (void)commands.insert(commands.end() - 1, {.statement = &owner_.statements_.version});
    ask(std::move(commands), true, &SettingUp::recorded);
  }

  void recorded(const Results& results) {
    if (auto problem = problem_with_version(schema(), results[1].number(0, 0).value_or(0))) {
      return fail(*std::move(problem));
    }
    if (made_.empty() && results[0].affected > 0)
      made_.push_back("the version in table " + qualified(schema(), "meta"));
    extend();
  }

  // --- What was added since ---

  // One table after the other, and only on request: for a moment no client can use it. Tables of other owners work
  // without it.
  void extend() {
    for (const TableDefinition* const table : state_.outdated()) {
      if (!extends_ || !state_.table(table->name)->may_alter) continue;
      extending_ = table;
      return ask(texts(extension(schema(), *table)), true, &SettingUp::extended);
    }
    finish(nullptr, made_);
  }

  void extended(const Results& /*results*/) {
    made_.push_back("column " + std::string(extending_->added) + " of table " + qualified(schema(), extending_->name));
    look();
  }

  [[nodiscard]] std::optional<Failure> problem_with_others() const {
    auto problem = problem_with_planted(schema(), state_);
    return problem ? problem : problem_with_owners(schema(), state_);
  }

  // --- Asking ---

  [[nodiscard]] const std::string& schema() const noexcept { return owner_.options_.schema; }
  [[nodiscard]] Command rights() const { return {.statement = &owner_.statements_.rights, .params = {schema()}}; }
  [[nodiscard]] Command tables() const { return {.statement = &owner_.statements_.tables, .params = {schema()}}; }

  [[nodiscard]] static std::vector<Command> texts(std::vector<std::string> statements) {
    std::vector<Command> commands;
    commands.reserve(statements.size());
    for (std::string& sql : statements) commands.push_back({.text = std::move(sql)});
    return commands;
  }

  // Without a deadline: when no caller waits any more, all of this is destroyed.
  void ask(std::vector<Command> commands, bool blocks, Reader reader) {
    const std::size_t count = commands.size();
    Query query{.commands = std::move(commands),
                .done = [this, count, reader](const Outcome& outcome, const Results& results) {
                  const auto self = shared_from_this();
                  if (outcome.problem != Problem::none) return refused(outcome);
                  if (results.size() != count) return fail({errc::protocol, "unexpected answer"});
                  (this->*reader)(results);
                }};
    (void)session_.request(Request{.query = std::move(query), .blocks = blocks});
  }

  void refused(const Outcome& outcome) {
    const Meaning meaning = meaning_of(outcome);
    const bool again = is_creation_race(outcome.sqlstate) || meaning.remedy == Remedy::busy ||
                       meaning.remedy == Remedy::retry || meaning.remedy == Remedy::set_up;
    if (outcome.problem == Problem::refused && again && ++attempts_ < max_attempts) {
      (void)session_.request(Request{.query = {.commands = {{.text = "ROLLBACK"}}}});
      if (extending_ == nullptr) return look();
      // Those who use the table go on meanwhile.
      return pause_.arm(saturating_add(owner_.executor_.now(), between_attempts), [this] { look(); });
    }
    Failure why = failure_of(outcome, schema());
    // All of it may be repeated, so nothing is in doubt; and what another makes does not make a lock busy.
    if (why.code == errc::ambiguous || why.code == errc::timed_out) why.code = errc::unavailable;
    fail(why);
  }

  // --- The end ---

  void fail(const Failure& why) {
    const std::string& endpoint = session_.server().endpoint;
    const bool told = endpoint.empty() || why.detail.starts_with(endpoint);
    const Failure failure{why.code, told ? why.detail : endpoint + ": " + why.detail};
    finish(&failure, {});
  }

  void finish(const Failure* why_not, const Made& made) {
    const auto self = shared_from_this();
    timer_.disarm();
    pause_.disarm();
    if (owner_.under_way_ == self) owner_.under_way_ = nullptr;
    const Lifetime::Watch life = owner_.lifetime_.watch();
    for (const Caller& caller : std::exchange(callers_, {})) {
      caller.done(why_not, made);
      if (life.over()) return;
    }
  }

  void arm() {
    TimePoint next = TimePoint::max();
    for (const Caller& caller : callers_) next = std::min(next, caller.deadline);
    if (next != TimePoint::max()) timer_.arm(next, [this] { give_up_overdue(); });
  }

  void give_up_overdue() {
    const auto self = shared_from_this();
    const Lifetime::Watch life = owner_.lifetime_.watch();
    const TimePoint now = owner_.executor_.now();
    const auto in_time = std::stable_partition(callers_.begin(), callers_.end(),
                                               [now](const Caller& caller) { return now < caller.deadline; });
    const std::vector<Caller> overdue(std::make_move_iterator(in_time), std::make_move_iterator(callers_.end()));
    callers_.erase(in_time, callers_.end());
    if (callers_.empty()) owner_.under_way_ = nullptr;
    arm();
    const Failure why = reason_for_silence();
    for (const Caller& caller : overdue) {
      caller.done(&why, {});
      if (life.over()) return;
    }
  }

  [[nodiscard]] Failure reason_for_silence() const {
    if (!session_.ready() && session_.problem().code) return session_.problem();
    return {errc::unavailable, "schema " + quote_identifier(schema()) + " could not be set up in time"};
  }

  void session_ready() override {}
  // What was asked has been answered with that.
  void session_down(const Failure& /*why*/, bool /*was_ready*/) override {}

  Schema& owner_;
  std::vector<Caller> callers_;
  SchemaState state_;
  Made made_;
  bool extends_ = false;
  const TableDefinition* extending_ = nullptr;
  int attempts_ = 0;
  Timer timer_;
  Timer pause_;
  Session session_;
};

Schema::Schema(Executor& executor, const Options& options, const Dialling& dialling)
    : executor_(executor), options_(options), dialling_(dialling), statements_(schema_statements(options.schema)) {}

Schema::~Schema() = default;

void Schema::set_up(TimePoint deadline, Handler done) {
  join(deadline, false, [done = std::move(done)](const Failure* why_not, const std::vector<std::string>& /*made*/) {
    done(why_not == nullptr ? std::nullopt : std::optional<Failure>(*why_not));
  });
}

void Schema::initialize(TimePoint deadline, Backend::Handler<std::vector<std::string>> done) {
  join(deadline, true, [done = std::move(done)](const Failure* why_not, const std::vector<std::string>& made) {
    if (why_not != nullptr) return done(*why_not);
    done(made);
  });
}

void Schema::join(TimePoint deadline, bool extends, Done done) {
  const bool first = under_way_ == nullptr;
  if (first) under_way_ = std::make_shared<SettingUp>(*this);
  under_way_->add(deadline, extends, std::move(done));
  if (first) under_way_->start();
}

}  // namespace dlock::postgres
