#include "backends/mysql/schema.hpp"

#include <algorithm>
#include <list>
#include <utility>

#include <dlock/duration.hpp>
#include <dlock/spi/result.hpp>

#include "backends/mysql/sql/text.hpp"
#include "util/names.hpp"

namespace dlock::mysql {

using sql::Outcome;
using sql::Problem;
using sql::Results;
using sql::Rows;

//   look -> read the version -> create, one statement after the other -> look ...
//                            -> finish
class Schema::SettingUp final : public std::enable_shared_from_this<SettingUp>, private sql::Session::User {
 public:
  explicit SettingUp(Schema& owner)
      : owner_(owner), session_(owner.executor_, owner.dialling_, {.word = "setup"}, sql::Upkeep::once, *this) {}

  void look() {
    ask({{.statement = &owner_.statements_.tables, .params = {schema()}}},
        [this](const Results& results) { looked(results.front()); });
  }

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

  // New tables and columns may be there, from a newer dlock.
  void looked(const Rows& tables) {
    std::vector<std::string> missing;
    for (const TableDefinition& table : layout()) {
      std::size_t row = 0;
      while (row < tables.size() && tables.text(row, 0) != table.name) ++row;
      const std::string name = util::quoted(schema() + "." + std::string(table.name));
      if (row == tables.size()) {
        missing.push_back("table " + name);
      } else if (!(tables.text(row, 1) + ",").starts_with(std::string(table.columns) + ",")) {
        return fail({errc::invalid_argument, "table " + name + " is not dlock's: it has the columns " +
                                                 tables.text(row, 1) + " instead of " + std::string(table.columns) +
                                                 "; use another schema"});
      } else if (tables.text(row, 2) != "InnoDB") {
        return fail({errc::invalid_argument,
                     "table " + name + " has no transactions: its engine is " + tables.text(row, 2) + ", not InnoDB"});
      }
    }
    if (missing.empty()) {
      return ask({{.statement = &owner_.statements_.version}},
                 [this](const Results& results) { check(results.front().number(0, 0)); });
    }
    if (created_) return fail({errc::invalid_argument, missing.front() + " cannot be made; use another schema"});
    made_ = std::move(missing);
    create(creation(schema(), tables.empty()));
  }

  void check(std::optional<std::int64_t> version) {
    if (!version) return create(creation(schema(), false));
    if (*version == schema_version) return finish(made_);
    fail({errc::unsupported, "schema " + util::quoted(schema()) + " has version " + std::to_string(*version) +
                                 " of dlock's tables, and this is a dlock for version " +
                                 std::to_string(schema_version) + ": use a newer dlock, or another schema"});
  }

  // The server commits before and after each.
  void create(std::vector<std::string> statements) {
    if (statements.empty()) {
      created_ = true;
      return look();
    }
    std::string first = std::move(statements.front());
    (void)statements.erase(statements.begin());
    ask({{.text = std::move(first)}}, [this, rest = std::move(statements)](const Results&) { create(rest); });
  }

  [[nodiscard]] const std::string& schema() const noexcept { return owner_.options_.schema; }

  // Without a deadline: once no caller waits, this object is destroyed.
  void ask(std::vector<sql::Command> commands, std::function<void(const Results&)> read) {
    (void)session_.request(
        {.query = {.commands = std::move(commands),
                   .done =
                       [this, read = std::move(read)](const Outcome& outcome, const Results& results) {
                         const auto self = shared_from_this();
                         outcome.problem == Problem::none ? read(results) : refused(outcome);
                       }},
         .blocks = true});
  }

  // Each change may be repeated, so no outcome is unknown; and a busy schema does not mean that a lock is busy.
  void refused(const Outcome& outcome) {
    Failure why = owner_.dialling_.dialect.failure_of(outcome);
    if (why.code == errc::ambiguous || why.code == errc::timed_out) why.code = errc::unavailable;
    if (why.code == errc::access_denied) why.detail += "; or run \"dlock init\" with a user that may create it";
    fail(std::move(why));
  }

  void fail(Failure why) {
    const std::string& endpoint = session_.server().endpoint;
    if (!endpoint.empty() && !why.detail.starts_with(endpoint)) why.detail = endpoint + ": " + why.detail;
    finish(std::move(why));
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
    done(Failure{errc::unavailable, "schema " + util::quoted(schema()) + " could not be set up in time"});
  }

  void session_ready() override {}
  // The handler of the request has the failure.
  void session_down(const Failure& /*why*/, bool /*was_ready*/) override {}

  Schema& owner_;
  std::list<Caller> callers_;
  Made made_;
  bool created_ = false;
  sql::Session session_;
};

Schema::Schema(Executor& executor, const Options& options, const sql::Dialling& dialling)
    : executor_(executor), options_(options), dialling_(dialling), statements_(schema_statements(options.schema)) {}

Schema::~Schema() = default;

void Schema::initialize(TimePoint deadline, Backend::Handler<Made> done) {
  const bool first = under_way_ == nullptr;
  if (first) under_way_ = std::make_shared<SettingUp>(*this);
  under_way_->add(deadline, std::move(done));
  if (first) under_way_->look();
}

}  // namespace dlock::mysql
