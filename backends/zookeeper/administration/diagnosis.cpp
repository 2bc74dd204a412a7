#include "backends/zookeeper/administration/diagnosis.hpp"

#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "backends/zookeeper/administration/server_report.hpp"
#include "util/duration_text.hpp"

namespace dlock::zookeeper {

namespace {

using Severity = Finding::Severity;
using Query = Queries::Query<bool>;

// Queries the servers and checks the session at the same time.
class Diagnosis : public std::enable_shared_from_this<Diagnosis> {
 public:
  using Done = Backend::Handler<std::vector<Finding>>;

  Diagnosis(const Patient& patient, Done done) : patient_(patient), done_(std::move(done)) {
    for (const Host& host : patient.options.hosts) servers_.push_back({.host = host});
  }

  void start(Queries& queries, const ServerAsker& ask) {
    const auto self = shared_from_this();
    unfinished_ = servers_.size() + 1;
    for (ServerReport& server : servers_) {
      ask(server.host, queries.answer_by(), [self, &server](Result<std::string> srvr) {
        server.srvr = std::move(srvr);
        self->finish_one();
      });
    }
    queries.start<bool>(
        [self](const Result<bool>& examined) {
          if (!examined.ok()) self->add(Severity::error, "session", examined.failure().detail);
          self->finish_one();
        },
        [self](const Query& query) { self->examine_session(query); });
  }

 private:
  void add(Severity severity, std::string check, std::string message) {
    findings_.push_back({severity, std::move(check), std::move(message)});
  }
  void finish_one() {
    if (--unfinished_ > 0) return;
    auto findings = judge(servers_);
    std::move(findings_.begin(), findings_.end(), std::back_inserter(findings));
    done_(std::move(findings));
  }

  void examine_session(const Query& query) {
    const auto requested = patient_.options.session_timeout;
    const auto granted = patient_.requests.session().granted_timeout();
    if (requested == granted) {
      add(Severity::ok, "session", "a session timeout of " + util::to_text(granted) + " was granted, as requested");
    } else {
      add(Severity::warning, "session",
          "a session timeout of " + util::to_text(requested) + " was requested, and " + util::to_text(granted) +
              " was granted; the server's bounds are minSessionTimeout and maxSessionTimeout, by default 2 and 20 "
              "times its tickTime");
    }
    patient_.requests.get(
        "/", [self = shared_from_this()](const Outcome& outcome, const Handle::Node&) { self->check_chroot(outcome); });
    create_lock(query);
  }

  void check_chroot(const Outcome& outcome) {
    const std::string& chroot = patient_.options.chroot;
    if (outcome.problem == Problem::no_node) {
      no_chroot_ = true;
      add(Severity::error, "chroot",
          chroot + ", the URL's path, does not exist, so no lock can be created below it; run dlock init to create it");
    } else if (outcome.problem == Problem::none && !chroot.empty()) {
      add(Severity::ok, "chroot", chroot + " exists");
    }
  }

  // The requests of an acquire, for a name that no lock has.
  void create_lock(const Query& query) {
    Executor& executor = patient_.executor;
    const std::string lock =
        patient_.options.prefix + "/dlock-doctor-" + OwnerId(executor.random(), executor.random()).to_string();
    patient_.parents.make(lock, [self = shared_from_this(), query, lock](const Parents::Made& made) {
      using Status = Parents::Made::Status;
      if (made.status == Status::made && query.goes_on()) return self->use_lock(query, lock);
      if (made.status != Status::refused) self->remove_later(lock);
      if (made.status != Status::made) self->check_rights(query, made.failure.detail);
    });
  }

  void use_lock(const Query& query, const std::string& lock) {
    const std::string node = lock + "/node";
    const auto self = shared_from_this();
    const auto used = [self](const Outcome& outcome, const auto&...) { self->used(outcome); };
    patient_.requests.create(node, {}, NodeKind::ephemeral, used);
    patient_.requests.children(lock, used);
    patient_.requests.remove(node, used);
    patient_.requests.remove(lock, [self, query, lock](const Outcome& outcome) {
      self->used(outcome);
      if (outcome.problem == Problem::unknown_outcome || outcome.problem == Problem::session_over) {
        self->remove_later(lock);
      }
      self->check_rights(query, self->problem_);
    });
  }

  void used(const Outcome& outcome) {
    const bool follows = outcome.problem == Problem::node_exists || outcome.problem == Problem::no_node;
    if (outcome.problem != Problem::none && !follows && problem_.empty()) problem_ = outcome.failure.detail;
  }

  // The connection broke. One node is below the other.
  void remove_later(const std::string& lock) {
    Removals& removals = patient_.removals;
    const auto epoch = patient_.requests.session().epoch();
    removals.remove({.lock_path = lock, .path = lock + "/node", .epoch = epoch},
                    [&removals, lock, epoch](const ReleaseOutcome& /*outcome*/) {
                      removals.remove({.lock_path = lock, .path = lock, .epoch = epoch});
                    });
  }

  void check_rights(const Query& query, const std::string& problem) {
    const std::string place = patient_.options.prefix.empty() ? "/" : patient_.options.prefix;
    if (no_chroot_) return query.answer(true);
    if (problem.empty()) {
      add(Severity::ok, "permissions", "locks can be created, listed and removed below " + place);
    } else {
      add(Severity::error, "permissions", "locks cannot be created below " + place + ": " + problem);
    }
    query.answer(true);
  }

  const Patient patient_;
  const Done done_;
  std::vector<ServerReport> servers_;
  std::size_t unfinished_ = 0;  // of the servers and the session
  bool no_chroot_ = false;
  std::string problem_;  // the first
  std::vector<Finding> findings_;
};

}  // namespace

void diagnose(Queries& queries, const ServerAsker& ask, const Patient& patient,
              Backend::Handler<std::vector<Finding>> done) {
  std::make_shared<Diagnosis>(patient, std::move(done))->start(queries, ask);
}

}  // namespace dlock::zookeeper
