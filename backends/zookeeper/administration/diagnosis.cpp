#include "backends/zookeeper/administration/diagnosis.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "backends/zookeeper/administration/four_letter.hpp"
#include "backends/zookeeper/administration/server_report.hpp"
#include "util/duration_text.hpp"

namespace dlock::zookeeper {

using Severity = Finding::Severity;

// Asks the servers and tries the session at the same time; reports when both are finished, or when time is up.
class Diagnosis::Examination : public std::enable_shared_from_this<Examination> {
 public:
  using Done = std::function<void(std::vector<Finding>)>;

  Examination(Diagnosis& owner, Done done)
      : owner_(owner),
        done_(std::move(done)),
        deadline_(saturating_add(owner.executor_.now(), owner.options_.response_timeout * 9 / 10)),
        timer_(owner.executor_) {
    for (const Host& host : owner_.options_.hosts) servers_.push_back({.report = {.host = host}, .question = nullptr});
  }

  void start() {
    timer_.arm(deadline_, [this] { finish(); });
    unanswered_ = servers_.size();
    for (std::size_t i = 0; i < servers_.size(); ++i) send(i);
    owner_.session_.want();
    if (owner_.session_.ready()) examine_session();
  }

  void session_ready() {
    if (!session_begun_) examine_session();
  }
  void session_refused(const Failure& why) {
    if (std::exchange(session_begun_, true)) return;
    session_finished_ = true;
    add(Severity::error, "session", why.detail);
    finish_if_complete();
  }

 private:
  struct Server {
    ServerReport report;
    std::shared_ptr<void> question;
  };

  // --- Servers ---

  void send(std::size_t server) {
    const auto answered = [this, server](Result<std::string> answer) {
      ServerReport& report = servers_[server].report;
      if (answer.ok()) {
        report.srvr = std::move(answer.value());
      } else {
        report.failure = answer.failure();
      }
      --unanswered_;
      finish_if_complete();
    };
    servers_[server].question = owner_.asker_(servers_[server].report.host, deadline_, answered);
  }

  // --- The session ---

  void add(Severity severity, std::string check, std::string message) {
    findings_.push_back({severity, std::move(check), std::move(message)});
  }

  void examine_session() {
    session_begun_ = true;
    const auto asked = owner_.options_.session_timeout;
    const auto granted = owner_.session_.granted_timeout();
    if (asked == granted) {
      add(Severity::ok, "session", "a session timeout of " + util::to_text(granted) + " was granted, as requested");
    } else {
      add(Severity::warning, "session",
          "a session timeout of " + util::to_text(asked) + " was requested, and " + util::to_text(granted) +
              " was granted; the server's bounds are minSessionTimeout and maxSessionTimeout, by default 2 and 20 "
              "times its tickTime");
    }
    try_requests();
  }

  // What an acquire does, at a place that no lock has.
  void try_requests() {
    Executor& executor = owner_.executor_;
    const std::string& prefix = owner_.options_.prefix;
    const std::string lock = prefix + "/dlock-doctor-" + OwnerId(executor.random(), executor.random()).to_string();
    const auto self = shared_from_this();
    owner_.session_.handle().get("/", 0,
                                 [self](const Outcome& outcome, const Handle::Node&) { self->judge_chroot(outcome); });
    owner_.parents_.make(lock, [self, lock](const Parents::Made& made) {
      using Status = Parents::Made::Status;
      const Session& session = self->owner_.session_;
      if (made.status == Status::made && session.ready()) return self->try_lock(lock);
      if (made.status != Status::refused) self->remove_later(lock + "/node", lock);
      if (!self->no_chroot_) {
        self->problem_ = (made.status == Status::made ? session.problem() : made.failure).detail;
      }
      self->judge_rights();
    });
  }

  void try_lock(const std::string& lock) {
    const std::string node = lock + "/node";
    const auto self = shared_from_this();
    Handle& handle = owner_.session_.handle();
    handle.create(node, {}, NodeKind::ephemeral,
                  [self](const Outcome& outcome, const Handle::Created&) { self->tried(outcome); });
    handle.children(lock, 0, [self](const Outcome& outcome, const std::vector<std::string>&) { self->tried(outcome); });
    handle.remove(node, [self](const Outcome& outcome) { self->tried(outcome); });
    handle.remove(lock, [self, node, lock](const Outcome& outcome) {
      self->tried(outcome);
      if (outcome.problem == Problem::unknown_outcome || outcome.problem == Problem::session_over) {
        self->remove_later(node, lock);
      }
      self->judge_rights();
    });
  }

  // The connection broke. The one node is below the other.
  void remove_later(const std::string& node, const std::string& lock) {
    Removals& removals = owner_.removals_;
    const auto epoch = owner_.session_.epoch();
    removals.remove({.lock_path = lock, .path = node, .epoch = epoch},
                    [&removals, lock, epoch](const ReleaseOutcome& /*outcome*/) {
                      removals.remove({.lock_path = lock, .path = lock, .epoch = epoch});
                    });
  }

  void judge_chroot(const Outcome& outcome) {
    const std::string& chroot = owner_.options_.chroot;
    if (outcome.problem == Problem::no_node) {
      no_chroot_ = true;
      add(Severity::error, "chroot",
          chroot + ", the URL's path, does not exist, so no lock can be created below it; run dlock init to create it");
    } else if (outcome.problem == Problem::none && !chroot.empty()) {
      add(Severity::ok, "chroot", chroot + " exists");
    }
  }

  void tried(const Outcome& outcome) {
    switch (outcome.problem) {
      case Problem::none:
      case Problem::node_exists:
      case Problem::no_node:  // follows from another problem
        return;
      default:
        if (problem_.empty()) problem_ = outcome.failure.detail;
    }
  }

  void judge_rights() {
    session_finished_ = true;
    const std::string place = owner_.options_.prefix.empty() ? "/" : owner_.options_.prefix;
    if (!problem_.empty()) {
      add(Severity::error, "permissions", "locks cannot be created below " + place + ": " + problem_);
    } else if (!no_chroot_) {
      add(Severity::ok, "permissions", "locks can be created, listed and removed below " + place);
    }
    finish_if_complete();
  }

  // --- The end ---

  void finish_if_complete() {
    if (unanswered_ == 0 && session_finished_) finish();
  }

  void finish() {
    if (!done_) return;
    timer_.disarm();
    const auto self = shared_from_this();
    std::erase(owner_.running_, self);
    std::vector<ServerReport> reports;
    for (Server& server : servers_) {
      if (server.report.srvr.empty() && !server.report.failure) {
        server.report.failure = {errc::unavailable, server.report.host.to_string() + ": no answer in time"};
      }
      reports.push_back(std::move(server.report));
    }
    auto findings = judge(reports);
    std::move(findings_.begin(), findings_.end(), std::back_inserter(findings));
    if (!session_finished_) {
      const std::string why = owner_.session_.problem().detail;
      findings.push_back(
          {Severity::error, "session", session_begun_ || why.empty() ? "no answer within the response timeout" : why});
    }
    std::exchange(done_, nullptr)(std::move(findings));
  }

  Diagnosis& owner_;
  Done done_;
  const TimePoint deadline_;
  Timer timer_;
  std::vector<Server> servers_;
  std::size_t unanswered_ = 0;
  bool session_begun_ = false;
  bool session_finished_ = false;
  bool no_chroot_ = false;
  std::string problem_;  // the first
  std::vector<Finding> findings_;
};

ServerAsker ask_over_tcp(Executor& executor) {
  return [&executor](const Host& host, TimePoint deadline, FourLetterQuestion::Handler done) {
    return std::make_shared<FourLetterQuestion>(executor, host, deadline, std::move(done));
  };
}

Diagnosis::Diagnosis(Executor& executor, const Options& options, Session& session, Parents& parents, Removals& removals,
                     ServerAsker asker)
    : executor_(executor),
      options_(options),
      session_(session),
      parents_(parents),
      removals_(removals),
      asker_(std::move(asker)) {}

Diagnosis::~Diagnosis() = default;

void Diagnosis::run(Backend::Handler<std::vector<Finding>> done) {
  const auto examination = std::make_shared<Examination>(
      *this, [done = std::move(done)](std::vector<Finding> findings) { done(std::move(findings)); });
  running_.push_back(examination);
  examination->start();
}

void Diagnosis::session_ready() {
  const auto running = running_;
  for (const auto& examination : running) examination->session_ready();
}

void Diagnosis::session_refused(const Failure& why) {
  const auto running = running_;
  for (const auto& examination : running) examination->session_refused(why);
}

}  // namespace dlock::zookeeper
