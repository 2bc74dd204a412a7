#include "backends/etcd/administration/diagnosis.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <string>
#include <utility>

#include "backends/common/findings.hpp"
#include "backends/etcd/locks/keys.hpp"
#include "util/duration_text.hpp"
#include "util/names.hpp"

namespace dlock::etcd {

namespace {

using Severity = Finding::Severity;
using Version = std::array<int, 3>;

Version parse_version(std::string_view text) {
  Version version{};
  for (int& part : version) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), part);
    if (error != std::errc()) return {};
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with('.')) text.remove_prefix(1);
  }
  return version;
}

// Of each minor version, the first release without it.
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

class Examination : public std::enable_shared_from_this<Examination> {
 public:
  Examination(Client& client, const Session& session, Backend::Handler<std::vector<Finding>> done)
      : client_(client), session_(session), done_(std::move(done)), deadline_(client.answer_by()) {}

  void start() {
    client_.call(method_status, {}, deadline_,
                 [self = shared_from_this(), begun = client_.executor().now()](const auto& answer, TimePoint sent) {
                   self->judge_status(answer, self->client_.executor().now() - std::max(sent, begun));
                 });
  }

 private:
  void add(Severity severity, std::string check, std::string message) {
    findings_.push_back({severity, std::move(check), std::move(message)});
  }

  void judge_status(const Result<std::string>& answer, std::chrono::nanoseconds within) {
    const auto status = answer.ok() ? read_status(answer.value()) : Result<StatusAnswer>(answer.failure());
    if (!status.ok()) {
      add(Severity::error, "server", status.failure().detail);
      return done_(std::move(findings_));
    }
    findings_.push_back(common::server_answered(client_.options().endpoint(), within));
    findings_.push_back(judge_version(status.value().version));
    if (status.value().leader == 0) add(Severity::error, "leader", "the cluster has no leader at the moment");
    findings_.push_back(judge_size(status.value().database_size));
    judge_encryption();
    if (client_.login_is_off()) {
      add(Severity::warning, "authentication",
          "authentication is not enabled, so the user and password of the URL are not checked");
    }
    client_.call(method_alarm, {}, deadline_,
                 [self = shared_from_this()](const auto& alarms, TimePoint) { self->judge_alarms(alarms); });
  }

  void judge_encryption() {
    if (client_.options().tls) return add(Severity::ok, "encryption", "TLS, and the server's certificate is verified");
    const bool this_machine = std::ranges::all_of(client_.options().hosts, &common::Host::is_this_machine);
    findings_.push_back(common::not_encrypted(this_machine, ", locks included; use etcds://"));
  }

  void judge_alarms(const Result<std::string>& answer) {
    const auto alarms = answer.ok() ? read_alarms(answer.value()) : Result<std::vector<Alarm>>(answer.failure());
    if (alarms.ok()) {  // else this user may not ask
      for (const Alarm each : alarms.value()) {
        if (each == Alarm::no_space) {
          add(Severity::error, "alarm",
              "NOSPACE: the database has reached its quota and accepts no new keys; compact and defragment it, then "
              "run "
              "etcdctl alarm disarm");
        }
        if (each == Alarm::corrupt) add(Severity::error, "alarm", "CORRUPT: members disagree about their data");
      }
    }
    try_place();
  }

  // What an acquire does, at a place that no lock has.
  void try_place() {
    Executor& executor = client_.executor();
    const std::string key =
        client_.options().prefix + ".doctor/" + OwnerId(executor.random(), executor.random()).to_string();
    client_.call(Transaction().if_absent({key}).put(key, "", session_.lease()).read({.range = {key}}), deadline_,
                 [self = shared_from_this(), key](const auto& answer) { self->made(answer, key); });
  }

  void made(const Result<TransactionAnswer>& answer, const std::string& key) {
    if (!answer.ok() && answer.failure().code != errc::ambiguous) return judge_place(answer);
    client_.call(Transaction().remove({key}), deadline_,
                 [self = shared_from_this()](const auto& removed) { self->judge_place(removed); });
  }

  void judge_place(const Result<TransactionAnswer>& answer) {
    const std::string& prefix = client_.options().prefix;
    const std::string place = prefix.empty() ? "locks" : "locks below " + util::quoted(prefix);
    if (answer.ok()) {
      add(Severity::ok, "permissions", place + " can be created, read and removed");
    } else {
      add(Severity::error, "permissions", place + " cannot be created: " + answer.failure().detail);
    }
    if (session_.lease() != 0) {
      const auto wanted = client_.options().session_ttl;
      const std::string granted = "a lease of " + util::to_text(session_.ttl()) + " was granted, ";
      if (session_.ttl() > wanted) {
        add(Severity::note, "session",
            granted + "and " + util::to_text(wanted) +
                " was requested; etcd grants at least one and a half election timeouts");
      } else {
        add(Severity::ok, "session", granted + "as requested");
      }
    }
    done_(std::move(findings_));
  }

  Client& client_;
  const Session& session_;
  const Backend::Handler<std::vector<Finding>> done_;
  const TimePoint deadline_;
  std::vector<Finding> findings_;
};

}  // namespace

Finding judge_version(std::string_view version) {
  const std::string name = "etcd " + std::string(version);
  const Version parsed = parse_version(version);
  if (parsed < Version{3, 4, 0}) return {Severity::error, "version", name + "; dlock needs 3.4 or later"};
  std::string faults;
  for (const KnownFault& each : known_faults) {
    const bool has = (parsed[1] == 4 && parsed[2] < each.in_3_4) || (parsed[1] == 5 && parsed[2] < each.in_3_5);
    if (parsed[0] == 3 && has) faults += (faults.empty() ? "" : "; ") + std::string(each.what);
  }
  if (faults.empty()) return {Severity::ok, "version", name};
  return {Severity::warning, "version", name + " has faults that later releases fix: " + faults};
}

Finding judge_size(std::int64_t bytes) {
  constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
  constexpr std::int64_t much = 1536 * mebibyte;  // three quarters of the usual quota
  const std::string size = std::to_string(bytes / mebibyte) + " MiB";
  if (bytes < much) return {Severity::ok, "size", "the size of the database is " + size};
  return {Severity::warning, "size",
          "the size of the database is " + size +
              "; at its quota (--quota-backend-bytes, 2 GiB by default) no lock can be acquired any more; "
              "--auto-compaction-retention keeps it small"};
}

void diagnose(Client& client, const Session& session, Backend::Handler<std::vector<Finding>> done) {
  std::make_shared<Examination>(client, session, std::move(done))->start();
}

}  // namespace dlock::etcd
