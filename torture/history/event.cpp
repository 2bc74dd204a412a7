#include "torture/history/event.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace dlock::torture {
namespace {

using Json = nlohmann::ordered_json;

// The name of a kind of event in a history, and its text for people; a second text for events with `yes` or no.
struct Wording {
  Kind kind;
  std::string_view name;
  std::string_view text;
  std::string_view text_of_no = {};
};
constexpr std::array wordings{
    Wording{Kind::started, "started", "started, {word}"},
    Wording{Kind::ended, "ended", "ended"},
    Wording{Kind::asked, "asked", "asks, {limit}"},
    Wording{Kind::cancelled, "cancelled", "cancels its acquire"},
    Wording{Kind::granted, "granted", "is granted the lock, token {token}{validity}"},
    Wording{Kind::denied, "denied", "does not get the lock: {word}"},
    Wording{Kind::looked, "looked", "looks: held", "looks: not held"},
    Wording{Kind::lost, "lost", "is told that the lock is lost"},
    Wording{Kind::releasing, "releasing", "releases"},
    Wording{Kind::released, "released", "has released, it was its own", "has released, it was not its own"},
    Wording{Kind::unreleased, "unreleased", "could not release: {word}"},
    Wording{Kind::writing, "writing", "{access}s with token {token}"},
    Wording{Kind::wrote, "wrote", "is told that the {access} was taken", "is told that the {access} was refused"},
    Wording{Kind::served, "served", "the resource takes a {access} with token {token}",
            "the resource refuses a {access} with token {token}"},
    Wording{Kind::stopped, "stopped", "process {subject} is stopped"},
    Wording{Kind::resumed, "resumed", "process {subject} goes on"},
    Wording{Kind::killed, "killed", "process {subject} is killed"},
    Wording{Kind::crashed, "crashed", "process {subject} has crashed: {word}"},
    Wording{Kind::struck, "struck", "fault: {word}"},
    Wording{Kind::healed, "healed", "healed: {word}"},
    Wording{Kind::probed, "probed", "a new process gets the lock", "a new process does not get the lock: {word}"},
    Wording{Kind::residue, "residue", "left behind: {word}"},
};

constexpr const Wording& wording_of(Kind kind) {
  return *std::ranges::find(wordings, kind, &Wording::kind);
}

Kind kind_named(std::string_view name) {
  const auto* const found = std::ranges::find(wordings, name, &Wording::name);
  if (found == wordings.end()) throw std::invalid_argument(fmt::format("unknown event \"{}\"", name));
  return found->kind;
}

bool answers(Kind kind) {
  return !wording_of(kind).text_of_no.empty();
}

constexpr std::array<std::pair<LockKind, std::string_view>, 4> kinds{{{LockKind::lock, "lock"},
                                                                      {LockKind::read_write, "read-write"},
                                                                      {LockKind::semaphore, "semaphore"},
                                                                      {LockKind::election, "election"}}};
constexpr std::string_view shared = "shared";

bool has_limit(Kind kind) {
  return kind == Kind::asked || kind == Kind::granted;
}

// Whether "until" may be missing.
bool may_have_end(Kind kind) {
  return kind == Kind::struck;
}

// Misspelt members are errors, not missing ones: a misspelt "until" would mean no deadline.
constexpr std::array<std::string_view, 13> members{"time",    "process", "event", "acquire", "lock",    "kind", "mode",
                                                   "permits", "token",   "until", "yes",     "subject", "word"};

void check_members(const Json& line) {
  if (!line.is_object()) throw std::invalid_argument("not an object");
  for (const auto& [name, value] : line.items()) {
    if (std::find(members.begin(), members.end(), name) == members.end()) {
      throw std::invalid_argument(fmt::format("unknown member \"{}\"", name));
    }
  }
}

// Json::get() would truncate a number that does not fit.
template <class Number>
Number number(const Json& line, const char* name) {
  const Json& value = line.at(name);
  const bool fits = value.is_number_unsigned()  ? std::in_range<Number>(value.get<std::uint64_t>())
                    : value.is_number_integer() ? std::in_range<Number>(value.get<std::int64_t>())
                                                : false;
  if (!fits) throw std::invalid_argument(fmt::format("\"{}\" is {}", name, value.dump()));
  return value.get<Number>();
}

template <class Number>
Number number_or_none(const Json& line, const char* name) {
  return line.contains(name) ? number<Number>(line, name) : Number{};
}

TimePoint time(const Json& line, const char* name) {
  return TimePoint(std::chrono::nanoseconds(number<std::int64_t>(line, name)));
}

// The lock, and the kind and mode of the request. Histories from before there were kinds are of plain locks.
void take_lock(const Json& line, Event& event) {
  event.lock = line.value("lock", std::string());
  if (line.contains("kind")) {
    const auto name = line["kind"].get<std::string>();
    const auto lock_kind = lock_kind_named(name);
    if (!lock_kind) throw std::invalid_argument(fmt::format("unknown kind \"{}\"", name));
    event.lock_kind = *lock_kind;
  }
  if (line.contains("mode")) {
    const auto mode = line["mode"].get<std::string>();
    if (mode != shared || event.lock_kind != LockKind::read_write) {
      throw std::invalid_argument(fmt::format("\"mode\" is \"{}\" of a {}", mode, to_string(event.lock_kind)));
    }
    event.mode = Mode::shared;
  }
  if (line.contains("permits")) {
    event.permits = number<std::uint32_t>(line, "permits");
    if (event.permits == 0 || event.lock_kind != LockKind::semaphore) {
      throw std::invalid_argument(fmt::format("\"permits\" is {} of a {}", event.permits, to_string(event.lock_kind)));
    }
  }
}

// "read-write lock a, acquire 17".
std::string about(const Event& e) {
  if (e.lock.empty()) return {};
  return fmt::format("  [{} {}{}{}]", to_string(e.lock_kind), e.lock, e.mode == Mode::shared ? " to read" : "",
                     e.attempt == 0 ? "" : fmt::format(", acquire {}", e.attempt));
}

std::string text_of(const Event& e) {
  const Wording& wording = wording_of(e.kind);
  const bool unlimited = e.until == TimePoint::max();
  const double left = unlimited ? 0 : in_seconds(e.until - e.at);
  return fmt::format(fmt::runtime(answers(e.kind) && !e.yes ? wording.text_of_no : wording.text),
                     fmt::arg("word", e.word), fmt::arg("token", e.token.value()), fmt::arg("subject", e.subject),
                     fmt::arg("access", e.mode == Mode::shared ? "read" : "write"),
                     fmt::arg("limit", unlimited ? "without a limit" : fmt::format("for at most {:.6f} s", left)),
                     fmt::arg("validity", unlimited ? "" : fmt::format(", valid for {:.6f} s", left)));
}

}  // namespace

std::string_view name_of(Kind kind) noexcept {
  return wording_of(kind).name;
}

std::string_view name_of(LockKind lock_kind) noexcept {
  const auto* const found =
      std::find_if(kinds.begin(), kinds.end(), [&](const auto& s) { return s.first == lock_kind; });
  return found == kinds.end() ? std::string_view{} : found->second;
}

std::optional<LockKind> lock_kind_named(std::string_view name) noexcept {
  const auto* const found = std::find_if(kinds.begin(), kinds.end(), [&](const auto& s) { return s.second == name; });
  return found == kinds.end() ? std::nullopt : std::optional(found->first);
}

std::string to_line(const Event& event) {
  Json line{{"time", event.at.time_since_epoch().count()}, {"process", event.process}, {"event", name_of(event.kind)}};
  if (event.attempt != 0) line["acquire"] = event.attempt;
  if (!event.lock.empty()) line["lock"] = event.lock;
  if (event.lock_kind != LockKind::lock) line["kind"] = name_of(event.lock_kind);
  if (event.mode != Mode::exclusive) line["mode"] = shared;
  if (event.permits != 1) line["permits"] = event.permits;
  if (event.token != FencingToken()) line["token"] = event.token.value();
  if (has_limit(event.kind) && event.until != TimePoint::max()) line["until"] = event.until.time_since_epoch().count();
  if (may_have_end(event.kind) && event.until != TimePoint()) line["until"] = event.until.time_since_epoch().count();
  if (answers(event.kind)) line["yes"] = event.yes;
  if (event.subject != 0) line["subject"] = event.subject;
  if (!event.word.empty()) line["word"] = event.word;
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<Event> parse_line(std::string_view line, std::string& why) {
  try {
    const Json json = Json::parse(line);
    check_members(json);
    Event event{.at = time(json, "time"), .kind = kind_named(json.at("event").get<std::string>())};
    event.process = number<int>(json, "process");
    event.attempt = number_or_none<std::uint64_t>(json, "acquire");
    take_lock(json, event);
    event.token = FencingToken(number_or_none<std::uint64_t>(json, "token"));
    if (has_limit(event.kind)) event.until = json.contains("until") ? time(json, "until") : TimePoint::max();
    if (may_have_end(event.kind) && json.contains("until")) event.until = time(json, "until");
    if (answers(event.kind)) event.yes = json.at("yes").get<bool>();
    event.subject = number_or_none<int>(json, "subject");
    event.word = json.value("word", std::string());
    return event;
  } catch (const Json::exception& e) {
    why = e.what();
  } catch (const std::invalid_argument& e) {
    why = e.what();
  }
  return std::nullopt;
}

std::string describe(const Event& event, TimePoint origin) {
  std::string who;
  if (event.process != 0) who = fmt::format("process {}: ", event.process);
  return fmt::format("{:+13.6f} s  {}{}{}", in_seconds(event.at - origin), who, text_of(event), about(event));
}

}  // namespace dlock::torture
