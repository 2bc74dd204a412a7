#include "backends/file/file_backend.hpp"

#include <cstddef>
#include <optional>
#include <utility>

#include "util/number.hpp"

namespace dlock::file {

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(errc::invalid_argument, why);
}

mode_t parse_mode(const std::string& text) {
  constexpr mode_t owner_bits = 0700;
  const auto mode = util::parse_number<mode_t>(text, 8);
  if (!mode || *mode > 07777) refuse("mode: \"" + text + "\" is not an octal file mode such as 0700");
  if ((*mode & owner_bits) != owner_bits) {
    refuse("mode: \"" + text + "\" would keep the owner out of the directory; use 07xx");
  }
  return *mode;
}

}  // namespace

Location parse_location(Url url) {
  if (url.user() || url.password()) refuse("a file:// URL has no user or password");
  for (const auto& host : url.hosts()) {
    if ((!host.name.empty() && host.name != "localhost") || host.port) {
      refuse("host \"" + host.name + "\": a file:// URL has no host; write file:///path with three slashes");
    }
  }
  if (url.hosts().size() > 1) refuse("host: a file:// URL has no host");
  Location location{.path = url.path()};
  if (!location.path.starts_with('/')) {
    refuse("path: a file:// URL names an absolute path, as in file:///run/lock/myapp");
  }
  if (const auto mode = url.take("mode")) location.mode = parse_mode(*mode);
  url.require_no_parameters();
  return location;
}

std::string subdirectory(LockKind kind) {
  constexpr std::array<const char*, 4> names = {"", "/.rw", "/.sem", "/.elect"};
  return names[static_cast<std::size_t>(kind)];
}

std::unique_ptr<Backend> make_file_backend(BackendHost& host, const BackendConfig& config) {
  return std::make_unique<FileBackend>(host, parse_location(config.url));
}

FileBackend::FileBackend(BackendHost& backend_host, Location location)
    : TryBackend(backend_host), location_(std::move(location)), client_(backend_host) {
  (void)open(LockKind::lock);
}

FileBackend::~FileBackend() = default;

Capabilities FileBackend::capabilities() const noexcept {
  return {.backend = "file",
          .strategy = {},
          .scope = Scope::machine,
          .lease_kind = LeaseKind::process,
          .fencing = FencingDurability::wall_clock,
          .read_write_locks = true,
          .semaphores = true,
          .elections = true,
          .can_inspect = true,
          .can_list = true,
          .can_forget = true,
          .can_forget_idle = true,
          .immediate = true,
          .min_lease = std::chrono::milliseconds(1),
          .max_lease = std::chrono::nanoseconds::max()};
}

LockSpace& FileBackend::open(LockKind kind) {
  auto& locks = spaces_[static_cast<std::size_t>(kind)];
  if (!locks) {
    LockDirectory directory(location_.path + subdirectory(kind), location_.mode, kind != LockKind::lock);
    locks = std::make_unique<LockSpace>(kind, std::move(directory), client_);
  }
  return *locks;
}

LockSpace* FileBackend::find(LockKind kind) {
  const auto& locks = spaces_[static_cast<std::size_t>(kind)];
  if (locks) return locks.get();
  auto found = find_file(location_.path + subdirectory(kind));
  if (!found.ok()) throw Error(found.failure());
  return found.value() ? &open(kind) : nullptr;
}

void FileBackend::try_acquire(const LockRequest& request, TryHandler done) {
  TryOutcome outcome{.status = TryOutcome::Status::busy};
  try {
    outcome = open(request.kind).try_acquire(request);
  } catch (const Error& error) {
    outcome = failed({error.code(), error.detail()});
  }
  done(std::move(outcome));
}

std::unique_ptr<Watch> FileBackend::watch(LockKind kind, const std::string& name, std::function<void()> changed) {
  return wait_for({.name = name, .owner = {}, .holder = {}, .lease = {}, .wait = true, .kind = kind},
                  std::move(changed));
}

std::unique_ptr<Watch> FileBackend::wait_for(const LockRequest& request, std::function<void()> changed) {
  try {
    return open(request.kind).watch(request, std::move(changed));
  } catch (const Error&) {
    return nullptr;  // the next try reports it
  }
}

void FileBackend::release(const Grant& grant, ReleaseHandler done) {
  const auto& locks = spaces_[static_cast<std::size_t>(grant.kind)];
  const bool ours = locks && locks->release(grant);
  done({.status = ours ? ReleaseOutcome::Status::released : ReleaseOutcome::Status::not_owner});
}

// --- Questions and removal ---

template <class T, class Ask>
void FileBackend::ask(LockKind kind, const Handler<T>& done, T nothing, Ask&& ask) {
  std::optional<Result<T>> answer;
  try {
    LockSpace* const locks = find(kind);
    answer = locks != nullptr ? ask(*locks) : Result<T>(std::move(nothing));
  } catch (const Error& error) {
    answer = Failure{error.code(), error.detail()};
  }
  done(std::move(*answer));
}

void FileBackend::inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) {
  ask(kind, done, LockInfo{.name = name, .kind = kind},
      [&](LockSpace& locks) { return locks.inspector().inspect(name); });
}

void FileBackend::list(LockKind kind, Handler<std::vector<LockInfo>> done) {
  ask(kind, done, std::vector<LockInfo>(), [](LockSpace& locks) { return locks.inspector().list(); });
}

void FileBackend::break_lock(LockKind kind, const std::string& name, Handler<bool> done) {
  Failure refusal{errc::unsupported, "only the holder of a kernel lock can release it"};
  try {
    if (LockSpace* const locks = find(kind)) refusal.detail += locks->inspector().who_holds(name);
  } catch (const Error&) {
    // The holder cannot be read: the refusal does not name it.
  }
  done(std::move(refusal));
}

void FileBackend::forget(const Forgetting& what, Handler<std::vector<std::string>> done) {
  ask(what.kind, done, std::vector<std::string>(), [&](LockSpace& locks) { return locks.inspector().forget(what); });
}

void FileBackend::diagnose(Handler<std::vector<Finding>> done) {
  ask(LockKind::lock, done, std::vector<Finding>(), [&](LockSpace& plain) -> Result<std::vector<Finding>> {
    std::vector<Finding> findings = plain.inspector().diagnose();
    for (const LockKind kind : {LockKind::read_write, LockKind::semaphore, LockKind::election}) {
      LockSpace* const locks = find(kind);
      if (locks == nullptr) continue;
      // Report only problems of this directory.
      for (Finding& each : locks->inspector().diagnose_directory()) {
        if (each.severity != Finding::Severity::ok) findings.push_back(std::move(each));
      }
    }
    return findings;
  });
}

}  // namespace dlock::file
