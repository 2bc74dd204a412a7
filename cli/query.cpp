// The commands that query the service and print the answer: as JSON, or as text made of that JSON.
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

// Also checks the names, before anything is sent.
Client connect_to(const Arguments& arguments) {
  Client client = connect(service_url(arguments.url), {.label = "dlock"});
  for (const std::string& name : arguments.names) (void)client.make_lock(name);
  return client;
}

int show(const Arguments& arguments, const Json& answer, std::string (*text)(const Json&),
         ExitCode status = ExitCode::ok) {
  print(arguments.json ? json_line(answer) : text(answer));
  return static_cast<int>(status);
}

std::string names_text(const Json& locks) {
  std::string text;
  for (const Json& lock : locks) text += printable(lock["name"].get<std::string>()) + "\n";
  return text;
}

}  // namespace

int status(const Arguments& arguments) {
  const Client client = connect_to(arguments);
  const LockInfo info = client.inspect(arguments.name(), arguments.kind);
  return show(arguments, to_json(info, client.capabilities()), status_text,
              arguments.exit_code && info.held ? ExitCode::findings : ExitCode::ok);
}

int list(const Arguments& arguments) {
  Json locks = Json::array();
  for (const LockInfo& info : connect_to(arguments).list(arguments.kind)) {
    if (info.held || !arguments.held_only) locks.push_back(to_json(info));
  }
  return show(arguments, locks, arguments.names_only ? names_text : list_text);
}

namespace {

[[noreturn]] void cannot_break(const Client& client, const std::string& name, LockKind kind) {
  std::string holders;
  if (client.capabilities().can_inspect) {
    const Json lock = to_json(client.inspect(name, kind));
    for (const Json& each : lock["holders"]) {
      if (!each["holder"].is_null()) holders += (holders.empty() ? "" : ", ") + each["holder"].get<std::string>();
    }
  }
  throw Error(errc::unsupported, fmt::format("the {} backend cannot take a lock away; end the holder instead{}",
                                             client.capabilities().backend,
                                             holders.empty() ? "" : " (" + holders + ", as host:pid:label)"));
}

std::string break_text(const Json& answer) {
  return fmt::format("\"{}\" {}\n", printable(answer["name"].get<std::string>()),
                     answer["broken"] ? "was taken away from all who held it" : "was not held");
}

std::string forget_text(const Json& answer) {
  return fmt::format("\"{}\" {}\n", printable(answer["name"].get<std::string>()),
                     answer["forgotten"] ? "was forgotten" : "was not known");
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
  if (!client.capabilities().can_break) cannot_break(client, name, arguments.kind);
  return show(arguments, {{"name", name}, {"broken", client.break_lock(name, arguments.kind)}}, break_text);
}

namespace {

// Whether there was something to forget. nullopt: the lock is in use, and a message was printed.
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

// Prints each name as it is removed: if an error ends the command, those printed were removed.
int forget(const Arguments& arguments) {
  const Client client = connect_to(arguments);
  Json all = Json::array();
  ExitCode status = ExitCode::ok;
  const auto add = [&](const std::string& name, std::optional<bool> forgotten) {
    if (!forgotten) status = ExitCode::busy;
    all.push_back({{"name", name}, {"forgotten", forgotten.value_or(false)}});
    if (forgotten && !arguments.json) print(forget_text(all.back()));
  };
  for (const std::string& name : arguments.names) add(name, forget_one(client, name, arguments.kind));
  // Each call removes a part.
  for (bool more = arguments.idle.has_value(); more;) {
    const std::vector<std::string> removed = client.forget_idle(*arguments.idle, arguments.kind);
    for (const std::string& name : removed) add(name, true);
    more = !removed.empty();
  }
  if (arguments.json) print(json_line(all));
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
          {"sharers_poll", c.sharers_poll},
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

// By Finding::Severity.
constexpr std::array severities{std::pair{"ok", Style::green}, std::pair{"note", Style::plain},
                                std::pair{"warning", Style::yellow}, std::pair{"error", Style::red}};

std::string guarantees(const Json& answer) {
  const Json& c = answer["capabilities"];
  Table table;
  const auto explained = [&](const char* guarantee, const char* key) {
    const std::string word = c[key];
    table.add({{guarantee}, {fmt::format("{}: {}", word, explain(guarantee, word))}});
  };
  table.add({{"service"}, {answer["url"]}});
  const std::string backend = c["backend"];
  const Json& strategy = c["strategy"];
  table.add({{"backend"},
             {strategy.is_null() ? backend : fmt::format("{} ({})", backend, strategy.get<std::string_view>())}});
  explained("scope", "scope");
  explained("lease", "lease_kind");
  explained("fencing", "fencing");
  std::string kinds = "lock";
  if (c["read_write_locks"]) kinds += ", read-write";
  if (c["semaphores"]) kinds += ", semaphore";
  if (c["elections"]) kinds += ", election";
  table.add({{"kinds"}, {kinds}});
  table.add({{"waiters"}, {c["fair"] ? "first come, first served" : "in no particular order"}});
  return table.to_string();
}

std::string doctor_text(const Json& answer) {
  Table table;
  for (const Json& finding : answer["findings"]) {
    const std::string severity = finding["severity"];
    const auto* const style = std::ranges::find(severities, severity, [](const auto& each) { return each.first; });
    table.add({{severity, style->second}, {finding["check"]}, {finding["message"]}});
  }
  return guarantees(answer) + (answer["findings"].empty() ? "" : "\n") + table.to_string();
}

std::string init_text(const Json& answer) {
  std::string text;
  for (const Json& each : answer["created"]) text += "created " + printable(each.get<std::string>()) + "\n";
  return text.empty() ? "nothing to do\n" : text;
}

std::string backends_text(const Json& answer) {
  Table table;
  for (const Json& each : answer) table.add({{each["scheme"].get<std::string>() + "://"}, {each["description"]}});
  return table.to_string();
}

}  // namespace

int doctor(const Arguments& arguments) {
  const Client client = connect_to(arguments);
  Json findings = Json::array();
  ExitCode status = ExitCode::ok;
  for (const Finding& each : client.diagnose()) {
    findings.push_back({{"severity", severities.at(static_cast<std::size_t>(each.severity)).first},
                        {"check", each.check},
                        {"message", each.message}});
    if (each.severity == Finding::Severity::error) status = ExitCode::findings;
  }
  return show(
      arguments,
      {{"url", client.url()}, {"capabilities", capabilities_json(client.capabilities())}, {"findings", findings}},
      doctor_text, status);
}

int init(const Arguments& arguments) {
  const Client client = connect_to(arguments);
  return show(arguments, {{"url", client.url()}, {"created", client.initialize()}}, init_text);
}

int show_backends(const Arguments& arguments) {
  Json all = Json::array();
  for (const std::string& scheme : backends()) {
    all.push_back({{"scheme", scheme}, {"description", describe_scheme(scheme)}});
  }
  return show(arguments, all, backends_text);
}

}  // namespace dlock::cli
