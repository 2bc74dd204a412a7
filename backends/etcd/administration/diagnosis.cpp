#include "backends/etcd/administration/diagnosis.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "backends/common/findings.hpp"
#include "backends/etcd/wire/messages.hpp"
#include "util/duration_text.hpp"
#include "util/names.hpp"

namespace dlock::etcd {

namespace {

using Severity = Finding::Severity;

// The first releases of 3.4 and 3.5 without the fault.
struct KnownFault {
  int in_3_4;
  int in_3_5;
  const char* what;
};
constexpr std::array<KnownFault, 3> known_faults = {{
    {31, 13, "a former leader can revoke leases that are kept alive, once its stalled disk recovers"},
    {36, 18, "watches can miss an event, so a waiter may learn of a release up to 40 s late"},
    {38, 23, "a keep-alive can succeed for a lease that was just revoked; dlock checks for that"},
}};

class Diagnosis : public std::enable_shared_from_this<Diagnosis> {
 public:
  Diagnosis(Client& client, const Session& session, Backend::Handler<std::vector<Finding>> done)
      : client_(client), session_(session), done_(std::move(done)), deadline_(client.answer_by()) {}

  void start() {
    client_.call(method_status, {}, deadline_,
                 [self = shared_from_this(), begun = client_.executor().now()](const auto& answer, TimePoint sent) {
                   self->check_status(read_answer(answer, read_status),
                                      self->client_.executor().now() - std::max(sent, begun));
                 });
  }

 private:
  void add(Severity severity, std::string check, std::string message) {
    findings_.push_back({severity, std::move(check), std::move(message)});
  }

  void check_status(const Result<StatusAnswer>& status, std::chrono::nanoseconds within) {
    if (!status.ok()) {
      add(Severity::error, "server", status.failure().detail);
      return done_(std::move(findings_));
    }
    findings_.push_back(common::server_answered(client_.options().endpoint(), within));
    check_version(status.value().version);
    if (status.value().leader == 0) add(Severity::error, "leader", "the cluster has no leader at the moment");
    check_size(status.value().database_size);
    check_encryption();
    if (client_.login_is_off()) {
      add(Severity::warning, "authentication",
          "authentication is not enabled, so the user and password of the URL are not checked");
    }
    client_.call(method_alarm, {}, deadline_, [self = shared_from_this()](const auto& answer, TimePoint) {
      self->check_alarms(read_answer(answer, read_alarms));
    });
  }

  void check_version(std::string_view version) {
    const std::string name = "etcd " + std::string(version);
    const auto [major, minor, patch] = common::parse_version(version);
    if (major < 3 || (major == 3 && minor < 4))
      return add(Severity::error, "version", name + "; dlock needs 3.4 or later");
    std::string faults;
    for (const KnownFault& each : known_faults) {
      const bool has = (minor == 4 && patch < each.in_3_4) || (minor == 5 && patch < each.in_3_5);
      if (major == 3 && has) faults += (faults.empty() ? "" : "; ") + std::string(each.what);
    }
    if (faults.empty()) return add(Severity::ok, "version", name);
    add(Severity::warning, "version", name + " has faults that later releases fix: " + faults);
  }

  void check_size(std::int64_t bytes) {
    constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
    constexpr std::int64_t much = 1536 * mebibyte;  // three quarters of the usual quota
    const std::string size = "the size of the database is " + std::to_string(bytes / mebibyte) + " MiB";
    if (bytes < much) return add(Severity::ok, "size", size);
    add(Severity::warning, "size",
        size +
            "; at its quota (--quota-backend-bytes, 2 GiB by default) no lock can be acquired any more; "
            "--auto-compaction-retention keeps it small");
  }

  void check_encryption() {
    if (client_.options().tls) return add(Severity::ok, "encryption", "TLS, and the server's certificate is verified");
    const bool this_machine = std::ranges::all_of(client_.options().hosts, &common::Host::is_this_machine);
    findings_.push_back(common::not_encrypted(this_machine, ", locks included; use etcds://"));
  }

  void check_alarms(const Result<std::vector<Alarm>>& alarms) {
    if (alarms.ok()) {  // otherwise the user has no right to read them
      for (const Alarm each : alarms.value()) {
        if (each == Alarm::no_space) {
          add(Severity::error, "alarm",
              "NOSPACE: the database has reached its quota and accepts no new keys; compact and defragment it, then "
              "run etcdctl alarm disarm");
        }
        if (each == Alarm::corrupt) add(Severity::error, "alarm", "CORRUPT: members disagree about their data");
      }
    }
    create_key();
  }

  // With the requests of an acquire, at a place that is no lock's.
  void create_key() {
    Executor& executor = client_.executor();
    const std::string key =
        client_.options().prefix + ".doctor/" + OwnerId(executor.random(), executor.random()).to_string();
    client_.call(Transaction().if_absent({key}).put(key, "", session_.lease()).read({.range = {key}}), deadline_,
                 [self = shared_from_this(), key](const auto& answer) { self->remove_key(answer, key); });
  }

  void remove_key(const Result<TransactionAnswer>& created, const std::string& key) {
    if (!created.ok() && created.failure().code != errc::ambiguous) return check_rights(created);
    client_.call(Transaction().remove({key}), deadline_,
                 [self = shared_from_this()](const auto& removed) { self->check_rights(removed); });
  }

  void check_rights(const Result<TransactionAnswer>& answer) {
    const std::string& prefix = client_.options().prefix;
    const std::string place = prefix.empty() ? "locks" : "locks below " + util::quoted(prefix);
    if (answer.ok()) {
      add(Severity::ok, "permissions", place + " can be created, read and removed");
    } else {
      add(Severity::error, "permissions", place + " cannot be created: " + answer.failure().detail);
    }
    if (session_.lease() != 0) check_session();
    done_(std::move(findings_));
  }

  void check_session() {
    const auto wanted = client_.options().session_ttl;
    const std::string granted = "a lease of " + util::to_text(session_.ttl()) + " was granted, ";
    if (session_.ttl() <= wanted) return add(Severity::ok, "session", granted + "as requested");
    add(Severity::note, "session",
        granted + "and " + util::to_text(wanted) +
            " was requested; etcd grants at least one and a half election timeouts");
  }

  Client& client_;
  const Session& session_;
  const Backend::Handler<std::vector<Finding>> done_;
  const TimePoint deadline_;
  std::vector<Finding> findings_;
};

}  // namespace

void diagnose(Client& client, const Session& session, Backend::Handler<std::vector<Finding>> done) {
  std::make_shared<Diagnosis>(client, session, std::move(done))->start();
}

}  // namespace dlock::etcd
