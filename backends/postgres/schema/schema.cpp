#include "backends/postgres/schema/schema.hpp"

#include <chrono>
#include <list>
#include <utility>

#include "backends/postgres/schema/schema_state.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/sqlstate.hpp"

namespace dlock::postgres {

namespace {

// Attempts fail while another client keeps the lock for seconds, or creates tables without the lock.
constexpr int max_attempts = 10;
constexpr std::chrono::milliseconds between_attempts(300);

}  // namespace

// Each change is a transaction in one query: no transaction is open between queries.
//
//   look -> read the version -> create -> look ...
//                            -> record the version -> finish
//                            -> finish
class Schema::SettingUp final : public std::enable_shared_from_this<SettingUp>, private Session::User {
 public:
  explicit SettingUp(Schema& owner)
      : owner_(owner),
        pause_(owner.executor_),
        session_(owner.executor_, owner.dialling_, {.word = "setup"}, Upkeep::once, *this) {}

  void look() { ask({rights(), tables()}, false, &SettingUp::looked); }

  void add(TimePoint deadline, Backend::Handler<Made> done) {
    const auto caller = callers_.emplace(callers_.end(), owner_.executor_, std::move(done));
    caller->timer.arm(deadline, [this, caller] { give_up(caller); });
  }

 private:
  struct Caller {
    Caller(Executor& executor, Backend::Handler<Made> then) : done(std::move(then)), timer(executor) {}
    Backend::Handler<Made> done;
    Timer timer;
  };
  using Reader = void (SettingUp::*)(const Results&);

  // --- Looking ---

  // Reads no table of an untrusted owner: that might run code of the owner.
  void looked(const Results& results) {
    state_ = read_schema_state(schema(), results[0], results[1]);
    if (const auto problem = state_.problem_with_planted()) return fail(*problem);
    if (const auto problem = state_.problem_with_owners()) return fail(*problem);
    const TableState* const meta = state_.table("meta");
    const bool readable = meta != nullptr && meta->may_select && state_.may_use;
    if (readable && !SchemaState{.schema = schema(), .tables = {*meta}}.problem_with_tables()) {
      return ask({version()}, false, &SettingUp::read_version);
    }
    decide(meta != nullptr && !meta->may_select);
  }

  void read_version(const Results& results) {
    const auto version = results[0].number(0, 0);
    if (version) {
      if (const auto problem = problem_with_version(schema(), *version)) return fail(*problem);
    }
    decide(version.has_value());
  }

  void decide(bool has_version) {
    if (const auto problem = state_.problem_with_tables()) return fail(*problem);
    if (const auto problem = state_.problem_with_rights()) return fail(*problem);
    const auto missing = state_.missing();
    if (!state_.exists || !missing.empty()) {
      if (!created_) return create();
      return fail(
          {errc::invalid_argument, qualified(schema(), missing.front()) + " is not a table; use another schema"});
    }
    if (!has_version) return record();
    finish(made_);
  }

  // --- Changing ---

  // Reads the state behind the lock: from then on no other client makes tables.
  void create() {
    std::vector<Command> commands = texts(creation(schema(), owner_.options_.durability, !state_.exists));
    (void)commands.insert(commands.begin() + first_change, {rights(), tables()});
    ask(std::move(commands), true, &SettingUp::created);
  }

  void created(const Results& results) {
    const SchemaState before = read_schema_state(schema(), results[first_change], results[first_change + 1]);
    made_ = before.additions(owner_.options_.durability);
    created_ = true;
    look();
  }

  void record() {
    std::vector<Command> commands = texts(recording(schema()));
    (void)commands.insert(commands.end() - 1, version());
    ask(std::move(commands), true, &SettingUp::recorded);
  }

  void recorded(const Results& results) {
    const auto version = results[first_change + 1].number(0, 0);
    if (const auto problem = problem_with_version(schema(), version.value_or(0))) return fail(*problem);
    finish(made_);
  }

  // --- Asking ---

  [[nodiscard]] const std::string& schema() const noexcept { return owner_.options_.schema; }
  [[nodiscard]] Command rights() const { return {.statement = &owner_.statements_.rights, .params = {schema()}}; }
  [[nodiscard]] Command tables() const { return {.statement = &owner_.statements_.tables, .params = {schema()}}; }
  [[nodiscard]] Command version() const { return {.statement = &owner_.statements_.version}; }

  [[nodiscard]] static std::vector<Command> texts(std::vector<std::string> statements) {
    std::vector<Command> commands;
    commands.reserve(statements.size());
    for (std::string& sql : statements) commands.push_back({.text = std::move(sql)});
    return commands;
  }

  // Without a deadline: once no caller waits, this object is destroyed.
  void ask(std::vector<Command> commands, bool blocks, Reader reader) {
    const std::size_t count = commands.size();
    Query query{.commands = std::move(commands),
                .done = [this, count, reader](const Outcome& outcome, const Results& results) {
                  const auto self = shared_from_this();
                  if (outcome.problem != Problem::none) return refused(outcome);
                  if (results.size() != count) return fail({errc::protocol, "unexpected answer"});
                  (this->*reader)(results);
                }};
    (void)session_.request({.query = std::move(query), .blocks = blocks});
  }

  // Other clients may be creating or using the tables.
  void refused(const Outcome& outcome) {
    const Meaning meaning = meaning_of(outcome);
    const bool again =
        meaning.remedy == Remedy::busy || meaning.remedy == Remedy::retry || meaning.remedy == Remedy::set_up;
    if (outcome.problem == Problem::refused && again && ++attempts_ < max_attempts) {
      (void)session_.request({.query = {.commands = {{.text = "ROLLBACK"}}}});
      return pause_.arm(saturating_add(owner_.executor_.now(), between_attempts), [this] { look(); });
    }
    Failure why = failure_of(outcome, schema());
    // Each change may be repeated, so no outcome is unknown; and a busy schema does not mean that a lock is busy.
    if (why.code == errc::ambiguous || why.code == errc::timed_out) why.code = errc::unavailable;
    fail(why);
  }

  // --- The end ---

  void fail(const Failure& why) {
    const std::string& endpoint = session_.server().endpoint;
    const bool named = endpoint.empty() || why.detail.starts_with(endpoint);
    finish(Failure{why.code, named ? why.detail : endpoint + ": " + why.detail});
  }

  void finish(const Result<Made>& result) {
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
    done(Failure{errc::unavailable, "schema " + quote_identifier(schema()) + " could not be set up in time"});
  }

  void session_ready() override {}
  // The handler of the request has the failure.
  void session_down(const Failure& /*why*/, bool /*was_ready*/) override {}

  Schema& owner_;
  std::list<Caller> callers_;
  SchemaState state_;
  Made made_;
  bool created_ = false;
  int attempts_ = 0;
  Timer pause_;
  Session session_;
};

Schema::Schema(Executor& executor, const Options& options, const Dialling& dialling)
    : executor_(executor), options_(options), dialling_(dialling), statements_(schema_statements(options.schema)) {}

Schema::~Schema() = default;

void Schema::set_up(TimePoint deadline, Handler done) {
  initialize(deadline, [done = std::move(done)](const Result<Made>& made) {
    done(made.ok() ? std::nullopt : std::optional(made.failure()));
  });
}

void Schema::initialize(TimePoint deadline, Backend::Handler<Made> done) {
  const bool first = under_way_ == nullptr;
  if (first) under_way_ = std::make_shared<SettingUp>(*this);
  under_way_->add(deadline, std::move(done));
  if (first) under_way_->look();
}

}  // namespace dlock::postgres
