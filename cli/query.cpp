// The commands that ask the service and print the answer.
#include <algorithm>
#include <csignal>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <dlock/client.hpp>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/json.hpp"
#include "cli/location.hpp"
#include "cli/lock_report.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"

namespace dlock::cli {

namespace {

constexpr int done = static_cast<int>(ExitCode::ok);

Client connect_to(const Arguments& arguments) {
  return connect(service_url(arguments.url), {.label = "dlock"});
}

}  // namespace

int status(const Arguments& arguments) {
  const Client client = connect_to(arguments);
  (void)client.make_lock(arguments.name());  // says what is wrong with a name before anything is asked
  const LockInfo info = client.inspect(arguments.name(), arguments.kind);
  const auto taken = taken_at(info, client.capabilities());
  if (arguments.json) {
    Json json = to_json(info);
    json["since"] = taken ? Json(utc_text(*taken)) : Json();
    print_json(json);
  } else {
    print(status_text(info, taken));
  }
  return static_cast<int>(arguments.exit_code && info.held ? ExitCode::findings : ExitCode::ok);
}

int list(const Arguments& arguments) {
  std::vector<LockInfo> locks = connect_to(arguments).list(arguments.kind);
  if (arguments.held_only) std::erase_if(locks, [](const LockInfo& info) { return !info.held; });
  if (arguments.json) {
    Json json = Json::array();
    for (const LockInfo& info : locks) json.push_back(to_json(info));
    print_json(json);
  } else if (arguments.names_only) {
    std::string names;
    for (const LockInfo& info : locks) names += printable(info.name) + "\n";
    print(names);
  } else {
    print(list_text(locks, arguments.kind));
  }
  return done;
}

namespace {

[[noreturn]] void cannot_break(const Client& client, const std::string& name, LockKind kind) {
  std::string holders;
  if (client.capabilities().can_inspect) {
    for (const HolderInfo& each : all_holders(client.inspect(name, kind))) {
      if (!each.holder.empty()) holders += (holders.empty() ? "" : ", ") + each.holder;
    }
  }
  throw Error(errc::unsupported, fmt::format("the {} backend cannot take a lock away; end the holder instead{}",
                                             client.capabilities().backend,
                                             holders.empty() ? "" : " (" + holders + ", as host:pid:label)"));
}

}  // namespace

int break_lock(const Arguments& arguments) {
  if (!arguments.yes) {
    throw UsageError(
        "break takes the lock away while its holder may be at work, so that two may be at work for a moment; "
        "say --yes if that is what you want");
  }
  const Client client = connect_to(arguments);
  const std::string& name = arguments.name();
  (void)client.make_lock(name);  // says what is wrong with a name before anything is asked
  if (!client.capabilities().can_break) cannot_break(client, name, arguments.kind);
  const bool broken = client.break_lock(name, arguments.kind);
  if (arguments.json) {
    print_json({{"name", name}, {"broken", broken}});
  } else {
    print(fmt::format("\"{}\" {}\n", name, broken ? "was taken away from all who held it" : "was not held"));
  }
  return done;
}

namespace {

// Whether there was something to forget; nothing where the lock is in use, which is said.
std::optional<bool> forget_one(const Client& client, const std::string& name, LockKind kind) {
  try {
    return client.forget(name, kind);
  } catch (const Error& error) {
    if (error.code() != errc::timed_out) throw;
    say(error.detail());
    return std::nullopt;
  }
}

}  // namespace

int forget(const Arguments& arguments) {
  const Client client = connect_to(arguments);
  for (const std::string& name : arguments.names) (void)client.make_lock(name);  // before anything is removed
  Json json = Json::array();
  ExitCode status = ExitCode::ok;
  const auto tell = [&](const std::string& name, bool forgotten) {
    json.push_back({{"name", name}, {"forgotten", forgotten}});
    if (arguments.json) return;
    print(fmt::format("\"{}\" {}\n", printable(name), forgotten ? "was forgotten" : "was not known"));
  };
  for (const std::string& name : arguments.names) {
    const std::optional<bool> forgotten = forget_one(client, name, arguments.kind);
    if (forgotten || arguments.json) tell(name, forgotten.value_or(false));
    if (!forgotten) status = ExitCode::busy;
  }
  // Each call removes a part.
  for (bool more = arguments.idle.has_value(); more;) {
    const std::vector<std::string> removed = client.forget_idle(*arguments.idle, arguments.kind);
    for (const std::string& name : removed) tell(name, true);
    more = !removed.empty();
  }
  if (arguments.json) print_json(json);
  return static_cast<int>(status);
}

namespace {

Json capabilities_json(const Capabilities& c) {
  return {{"backend", c.backend},
          {"strategy", c.strategy.empty() ? Json() : Json(c.strategy)},
          {"scope", to_string(c.scope)},
          {"lease_kind", to_string(c.lease_kind)},
          {"fencing", to_string(c.fencing)},
          {"fair", c.fair},
          {"wakes_waiters", c.wakes_waiters},
          {"wakes_one", c.wakes_one},
          {"counts_waiters", c.counts_waiters},
          {"one_waiter_per_client", c.one_waiter_per_client},
          {"max_locks", c.max_locks == 0 ? Json() : Json(c.max_locks)},
          {"can_inspect", c.can_inspect},
          {"can_list", c.can_list},
          {"can_break", c.can_break},
          {"can_forget", c.can_forget},
          {"can_forget_idle", c.can_forget_idle},
          {"read_write_locks", c.read_write_locks},
          {"semaphores", c.semaphores},
          {"elections", c.elections},
          {"close_on_exec", c.close_on_exec}};
}

std::string kinds(const Capabilities& c) {
  std::string words;
  for (const LockKind kind : every_kind) {
    if (c.has(kind)) words += (words.empty() ? "" : ", ") + std::string(kind_word(kind));
  }
  return words;
}

std::string guarantees(const Client& client) {
  const Capabilities c = client.capabilities();
  Table table;
  table.add({{"service"}, {client.url()}});
  table.add(
      {{"backend"}, {c.strategy.empty() ? std::string(c.backend) : fmt::format("{} ({})", c.backend, c.strategy)}});
  table.add({{"scope"}, {fmt::format("{}: {}", to_string(c.scope), explain(c.scope))}});
  table.add({{"lease"}, {fmt::format("{}: {}", to_string(c.lease_kind), explain(c.lease_kind))}});
  table.add({{"fencing"}, {fmt::format("{}: {}", to_string(c.fencing), explain(c.fencing))}});
  table.add({{"kinds"}, {kinds(c)}});
  table.add({{"waiters"}, {c.fair ? "first come, first served" : "in no particular order"}});
  return table.to_string();
}

Style style_of(Finding::Severity severity) {
  switch (severity) {
    case Finding::Severity::ok:
      return Style::green;
    case Finding::Severity::note:
      return Style::plain;
    case Finding::Severity::warning:
      return Style::yellow;
    case Finding::Severity::error:
      break;
  }
  return Style::red;
}

}  // namespace

int doctor(const Arguments& arguments) {
  const Client client = connect_to(arguments);
  const std::vector<Finding> findings = client.diagnose();
  if (arguments.json) {
    Json list = Json::array();
    for (const Finding& finding : findings) list.push_back(to_json(finding));
    print_json({{"url", client.url()}, {"capabilities", capabilities_json(client.capabilities())}, {"findings", list}});
  } else {
    Table table;
    for (const Finding& finding : findings) {
      table.add(
          {{std::string(to_string(finding.severity)), style_of(finding.severity)}, {finding.check}, {finding.message}});
    }
    print(guarantees(client) + (findings.empty() ? "" : "\n") + table.to_string());
  }
  const bool bad = std::any_of(findings.begin(), findings.end(),
                               [](const Finding& f) { return f.severity == Finding::Severity::error; });
  return static_cast<int>(bad ? ExitCode::findings : ExitCode::ok);
}

int init(const Arguments& arguments) {
  const Client client = connect_to(arguments);
  const std::vector<std::string> created = client.initialize();
  if (arguments.json) {
    print_json({{"url", client.url()}, {"created", created}});
    return done;
  }
  std::string text;
  for (const std::string& what : created) text += "created " + printable(what) + "\n";
  print(created.empty() ? "nothing to do\n" : text);
  return done;
}

int show_backends(const Arguments& arguments) {
  Json json = Json::array();
  Table table;
  for (const std::string& scheme : backends()) {
    const std::string description(describe_scheme(scheme));
    json.push_back({{"scheme", scheme}, {"description", description}});
    table.add({{scheme + "://"}, {description}});
  }
  if (arguments.json) {
    print_json(json);
  } else {
    print(table.to_string());
  }
  return done;
}

}  // namespace dlock::cli
