#include "backends/redis/administration/diagnosis.hpp"

#include <charconv>
#include <memory>
#include <string>
#include <utility>

#include "backends/common/findings.hpp"
#include "backends/redis/connection/server_error.hpp"
#include "backends/redis/connection/server_info.hpp"
#include "backends/redis/requests/keys.hpp"
#include "util/duration_text.hpp"
#include "util/names.hpp"

namespace dlock::redis {

using Severity = Finding::Severity;
using Type = Reply::Type;

namespace {

// All requests are sent at once; the findings are reported after the last answer.
class Diagnosis : public std::enable_shared_from_this<Diagnosis> {
 public:
  Diagnosis(CommandClient& commands, Backend::Handler<std::vector<Finding>> done)
      : commands_(commands),
        done_(std::move(done)),
        deadline_(saturating_add(commands.executor().now(), commands.options().response_timeout)) {}

  void start() {
    ++under_way_;  // this call
    ask({"PING"}, &Diagnosis::reached);
    ask({"INFO"}, &Diagnosis::read_info);
    ask({"TIME"}, &Diagnosis::compare_clocks);
    try_commands();
    answered();
  }

 private:
  using Reader = void (Diagnosis::*)(Result<Reply>, TimePoint sent);

  void ask(Command command, Reader reader) {
    ++under_way_;
    (void)commands_.request(std::move(command), deadline_,
                            [self = shared_from_this(), reader](Result<Reply> reply, TimePoint sent) {
                              (self.get()->*reader)(std::move(reply), sent);
                              self->answered();
                            });
  }

  void answered() {
    if (--under_way_ > 0) return;
    if (!unusable_.empty()) return done_(std::vector<Finding>{{Severity::error, "server", unusable_}});
    judge_permissions();
    done_(std::move(findings_));
  }

  void add(Severity severity, std::string check, std::string message) {
    findings_.push_back({severity, std::move(check), std::move(message)});
  }

  void reached(Result<Reply> reply, TimePoint sent) {
    const auto round_trip = commands_.executor().now() - sent;
    if (!reply.ok()) {
      unusable_ = reply.failure().detail;
      return;
    }
    findings_.push_back(common::server_answered(commands_.options().endpoint(), round_trip));
    if (!commands_.options().sentinel) findings_.push_back(judge_encryption(commands_.options()));
  }

  void read_info(Result<Reply> reply, TimePoint) {
    if (!reply.ok() || !reply.value().is(Type::string)) {
      const std::string why = reply.ok() ? "unexpected answer" : reply.failure().detail;
      return add(Severity::note, "settings", "cannot be checked without the right to run INFO: " + why);
    }
    const std::string_view info = reply.value().text;
    if (info_field(info, "redis_mode").value_or("") == "sentinel") {
      unusable_ = commands_.options().endpoint() + " is a sentinel; use redis-sentinel://";
      return;
    }
    check_version(info);
    check_role(info);
    check_memory(info);
    check_persistence(info);
  }

  void check_version(std::string_view info) {
    const std::string version(info_field(info, "redis_version").value_or("unknown"));
    int major = 0;
    (void)std::from_chars(version.data(), version.data() + version.size(), major);  // 0 if it is no number
    if (major >= 5) {
      add(Severity::ok, "version", "Redis " + version);
    } else {
      add(Severity::error, "version", "Redis " + version + "; dlock needs 5.0 or later");
    }
    const bool node = info_field(info, "redis_mode").value_or("") == "cluster";
    if (node && !commands_.options().cluster) {
      add(Severity::error, "cluster", "this is a node of a cluster; use redis-cluster://");
    }
    if (node && major < 7) {
      add(Severity::note, "waking",
          "sharded channels need Redis 7.0, so waiters are not woken when a lock is released; they poll instead");
    }
  }

  void check_role(std::string_view info) {
    if (const auto role = info_field(info, "role"); role && *role != "master") {
      const bool allowed = commands_.options().any_role;
      return add(
          allowed ? Severity::warning : Severity::error, "role",
          "not a master (role " + util::quoted(*role) + "); two clients could hold the same lock, one at the master");
    }
    const auto replicas = info_number(info, "connected_slaves").value_or(0);
    const auto wanted = commands_.options().replicas_ack;
    // Sentinels also count replicas that are down, and judge_cluster() counts those of every master.
    if (commands_.options().sentinel || (commands_.options().cluster && replicas >= wanted)) {
      return add(Severity::ok, "role", "a master with " + std::to_string(replicas) + " replicas");
    }
    if (wanted > replicas) {
      add(Severity::error, "role",
          "replicas_ack=" + std::to_string(wanted) + ", but only " + std::to_string(replicas) +
              " replicas are connected");
    } else if (replicas > wanted) {
      add(Severity::note, "role",
          "a master with " + std::to_string(replicas) +
              " replicas: a failover may lose the latest locks; replicas_ack=" + std::to_string(replicas) +
              " makes that less likely, fencing tokens make it harmless");
    } else {
      add(Severity::ok, "role", wanted == 0 ? "a master without replicas" : "a master; all replicas acknowledge locks");
    }
  }

  void check_memory(std::string_view info) {
    if (auto danger = eviction_danger(info)) {
      add(Severity::error, "maxmemory-policy", *std::move(danger));
    } else {
      add(Severity::ok, "maxmemory-policy", "locks are not evicted");
    }
  }

  void check_persistence(std::string_view info) {
    const bool aof = info_number(info, "aof_enabled").value_or(0) == 1;
    if (aof) {
      return add(Severity::ok, "persistence",
                 "an append-only file: locks survive a restart of the server; a power failure can lose the last "
                 "second, unless appendfsync is always");
    }
    add(Severity::warning, "persistence",
        "no append-only file: after a restart of the server, other clients can acquire locks that are held, and tokens "
        "grow only by the server's clock; set appendonly yes");
  }

  void compare_clocks(Result<Reply> reply, TimePoint) {
    if (!reply.ok()) return;  // try_commands() reports a missing right
    const auto& fields = reply.value().elements;
    std::int64_t seconds = 0;
    if (fields.size() != 2 || !fields[0].is(Type::string)) return;
    const std::string& text = fields[0].text;
    if (std::from_chars(text.data(), text.data() + text.size(), seconds).ec != std::errc()) return;
    const auto ours =
        std::chrono::duration_cast<std::chrono::seconds>(commands_.executor().clock().wall_now().time_since_epoch());
    findings_.push_back(common::compared_clocks(seconds, ours.count(), Severity::warning,
                                                "leases expire early or late, because Redis measures them by it"));
  }

  // Runs the scripts' commands on keys that no lock has, because a script's error does not name the missing right.
  void try_commands() {
    Executor& executor = commands_.executor();
    const std::string name = "dlock-doctor:" + OwnerId(executor.random(), executor.random()).to_string();
    const Keys keys = keys_of(commands_.options().prefix, name);
    const std::vector<Command> commands = {
        {"SET", keys.lock, "x", "PX", "1000"},
        {"GET", keys.lock},
        {"PEXPIRE", keys.lock, "1000"},
        {"PTTL", keys.lock},
        {"ZADD", keys.queue, "1", "x"},
        {"PEXPIRE", keys.queue, "1000"},
        {"ZSCORE", keys.queue, "x"},
        {"ZRANK", keys.queue, "x"},
        {"ZRANGE", keys.queue, "0", "0"},
        {"ZREM", keys.queue, "x"},
        {"TIME"},
        {"EVAL", "return 1", "0"},
        {"EVALSHA", "ffffffffffffffffffffffffffffffffffffffff", "0"},
        {publish_command(commands_.options()), client_channel(commands_.options(), "doctor", keys.lock), ""},
        {"SCAN", "0", "MATCH", keys.lock, "COUNT", "1"},
        {"DEL", keys.lock, keys.queue},
    };
    for (const auto& command : commands) ask(command, &Diagnosis::tried);
    const Keys shared = keys_of(commands_.options().prefix, name, LockKind::semaphore);
    for (const auto& command : {Command{"ZRANGE", shared.lock, "0", "0"}, Command{"HSET", shared.fence, "x", "1"},
                                Command{"HGET", shared.fence, "x"}, Command{"HDEL", shared.fence, "x"}}) {
      ask(command, &Diagnosis::tried_for_sharing);
    }
  }

  void tried(Result<Reply> reply, TimePoint) { note_missing(reply, missing_); }
  void tried_for_sharing(Result<Reply> reply, TimePoint) { note_missing(reply, missing_for_sharing_); }

  static void note_missing(const Result<Reply>& reply, std::string& missing) {
    if (reply.ok() || reply.failure().code != errc::access_denied) return;
    if (!missing.empty()) missing += "; ";
    missing += reply.failure().detail;
  }

  void judge_permissions() {
    if (!missing_.empty()) {
      add(Severity::error, "permissions", missing_);
    } else if (missing_for_sharing_.empty()) {
      add(Severity::ok, "permissions", "this user may run everything that dlock does");
    }
    if (!missing_for_sharing_.empty()) {
      add(Severity::note, "permissions", "missing for read-write locks and semaphores: " + missing_for_sharing_);
    }
  }

  CommandClient& commands_;
  const Backend::Handler<std::vector<Finding>> done_;
  const TimePoint deadline_;
  int under_way_ = 0;
  std::string unusable_;
  std::string missing_;
  std::string missing_for_sharing_;
  std::vector<Finding> findings_;
};

}  // namespace

Finding judge_encryption(const Options& options) {
  if (options.tls) return {Severity::ok, "encryption", "TLS, and the server's certificate is verified"};
  return common::not_encrypted(options.host.is_this_machine(),
                               ", the password included; use rediss://, or a network that you trust");
}

void diagnose(CommandClient& commands, Backend::Handler<std::vector<Finding>> done) {
  std::make_shared<Diagnosis>(commands, std::move(done))->start();
}

Finding judge_down_after(std::string check, const std::string& setting, std::chrono::milliseconds down_after,
                         const Options& options) {
  std::string said = "a master counts as down when it has not answered for " + util::to_text(down_after);
  if (down_after <= options.lease) return {Severity::ok, std::move(check), std::move(said)};
  said += " (" + setting + "), longer than a lease of " + util::to_text(options.lease) +
          ": locks expire before another master takes its place";
  return {Severity::note, std::move(check), std::move(said)};
}

}  // namespace dlock::redis
