// What the file backend knows about locks that it does not hold, and the removal of their files. Questions only read,
// and wake no waiter.
#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <memory>
#include <utility>

#include "backends/file/file_backend.hpp"
#include "backends/file/file_name.hpp"
#include "backends/file/system_failure.hpp"
#include "util/names.hpp"

namespace dlock::file {

namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { (void)::closedir(directory); }  // it was only read
};

struct Glimpse {
  bool held = false;
  RecordContent record;
};

Result<Glimpse> glimpse(int fd, const std::string& path) {
  constexpr int attempts = 3;  // a holder that is just writing its record may be caught half-way
  Glimpse seen;
  for (int i = 0; i < attempts; ++i) {
    auto lock = look_at_lock(fd, path);
    if (!lock.ok()) return lock.failure();
    seen.held = lock.value() == LockState::busy;
    auto content = read_content(fd, path);
    if (!content.ok()) return content.failure();
    seen.record = std::move(content.value().record);
    if (!std::holds_alternative<BadRecord>(seen.record)) break;
  }
  return seen;
}

LockInfo describe(std::string name, const Glimpse& seen) {
  LockInfo info{.name = std::move(name), .held = seen.held};
  if (const auto* read = std::get_if<ReadRecord>(&seen.record)) {
    info.token = FencingToken(read->record.token);
    if (seen.held) info.holder = read->record.holder;
  }
  return info;
}

// The name of the lock that a file belongs to; nullopt for a stranger's file.
std::optional<std::string> lock_name_of(const std::string& file, const RecordContent& content) {
  const auto* read = std::get_if<ReadRecord>(&content);
  auto name = read != nullptr && read->name ? read->name : decode_file_name(file);
  if (!name || util::problem_with_name(*name) || encode_file_name(*name) != file) return std::nullopt;
  return name;
}

}  // namespace

void FileBackend::inspect(Space /*space*/, const std::string& name, Handler<LockInfo> done) {
  std::optional<Result<LockInfo>> answer;
  try {
    answer = inspect_file(encode_file_name(name), name);
  } catch (const std::exception& e) {  // out of memory
    answer = Failure{errc::unavailable, e.what()};
  }
  done(std::move(*answer));
}

Result<LockInfo> FileBackend::inspect_file(const std::string& file, const std::string& name) {
  if (!directory_.is_current()) directory_suspect_ = true;
  if (auto problem = follow_directory()) return *problem;
  auto existing = directory_.open_existing(file);
  if (!existing.ok()) return existing.failure();
  if (!existing.value()) return LockInfo{.name = name};
  const std::string path = directory_.path_of(file);
  auto seen = glimpse(existing.value()->get(), path);
  if (!seen.ok()) return seen.failure();
  if (auto problem = problem_with(seen.value().record, name, path)) return *problem;
  return describe(name, seen.value());
}

void FileBackend::list(Space /*space*/, Handler<std::vector<LockInfo>> done) {
  std::optional<Result<std::vector<LockInfo>>> answer;
  try {
    answer = list_all();
  } catch (const std::exception& e) {  // out of memory
    answer = Failure{errc::unavailable, e.what()};
  }
  done(std::move(*answer));
}

Result<std::vector<std::string>> FileBackend::entries() {
  if (!directory_.is_current()) directory_suspect_ = true;
  if (auto problem = follow_directory()) return *problem;
  util::UniqueFd fd(::openat(directory_.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return system_failure("cannot read directory", directory_.path(), errno);
  const std::unique_ptr<DIR, CloseDirectory> open(::fdopendir(fd.get()));
  if (!open) return system_failure("cannot read directory", directory_.path(), errno);
  (void)fd.release();  // closedir() closes it
  std::vector<std::string> files;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(open.get());
    if (entry == nullptr) break;
    const std::string file = entry->d_name;
    if (decode_file_name(file) || is_shortened(file)) files.push_back(file);
  }
  if (errno != 0) return system_failure("cannot read directory", directory_.path(), errno);
  return files;
}

Result<std::vector<LockInfo>> FileBackend::list_all() {
  auto files = entries();
  if (!files.ok()) return files.failure();
  std::vector<LockInfo> locks;
  for (const auto& file : files.value()) {
    auto existing = directory_.open_existing(file);
    if (!existing.ok() || !existing.value()) continue;  // not ours to read; diagnose() counts those
    auto seen = glimpse(existing.value()->get(), directory_.path_of(file));
    if (!seen.ok()) continue;
    auto name = lock_name_of(file, seen.value().record);
    const bool remembered = std::holds_alternative<ReadRecord>(seen.value().record);
    if (name && (seen.value().held || remembered)) locks.push_back(describe(std::move(*name), seen.value()));
  }
  std::sort(locks.begin(), locks.end(), [](const LockInfo& a, const LockInfo& b) { return a.name < b.name; });
  return locks;
}

void FileBackend::break_lock(Space /*space*/, const std::string& name, Handler<bool> done) {
  Failure refusal{errc::unsupported, "a kernel lock can be freed by its holder only"};
  try {
    const std::string file = encode_file_name(name);
    auto existing = directory_.open_existing(file);
    if (existing.ok() && existing.value()) {
      auto seen = glimpse(existing.value()->get(), directory_.path_of(file));
      const auto* read = seen.ok() && seen.value().held ? std::get_if<ReadRecord>(&seen.value().record) : nullptr;
      if (read != nullptr && read->belongs_to(name)) {
        refusal.detail += "; lock \"" + name + "\" is held by process " + std::to_string(read->record.pid) + " (" +
                          read->record.holder + "), which has to end or release it";
      }
    }
  } catch (const std::exception&) {
    // Out of memory for the details: the refusal stands without them.
  }
  done(std::move(refusal));
}

void FileBackend::forget(const Forgetting& what, Handler<std::vector<std::string>> done) {
  std::optional<Result<std::vector<std::string>>> answer;
  try {
    answer = forget_files(what);
  } catch (const std::exception& e) {  // out of memory
    answer = Failure{errc::unavailable, e.what()};
  }
  done(std::move(*answer));
}

Result<std::vector<std::string>> FileBackend::forget_files(const Forgetting& what) {
  constexpr std::size_t most = 1000;  // in one call, which holds up everything else that this client does
  if (!directory_.is_current()) directory_suspect_ = true;
  if (auto problem = follow_directory()) return *problem;
  Result<std::vector<std::string>> files = std::vector<std::string>{encode_file_name(what.name)};
  if (what.name.empty()) files = entries();
  if (!files.ok()) return files.failure();
  const std::int64_t newest = microseconds(host().executor().clock().wall_now()) -
                              std::chrono::ceil<std::chrono::microseconds>(what.idle).count();
  std::vector<std::string> removed;
  std::optional<Failure> problem;
  for (const auto& file : files.value()) {
    if (removed.size() == most) break;
    auto forgotten = forget_file(file, newest);
    if (forgotten.ok() && forgotten.value()) removed.push_back(*std::move(forgotten.value()));
    // What is no lock file is nothing that could be forgotten.
    if (!forgotten.ok() && forgotten.failure().code != errc::protocol) problem = forgotten.failure();
  }
  if (removed.empty() && problem) return *problem;
  return removed;
}

// Whoever has opened the file before it goes is granted nothing on it: once the lock of it is theirs, they look whether
// its path still leads to it, and try again. A try that comes in the moment when the lock is ours finds it busy, so
// nothing is locked that is not likely to be removed.
Result<std::optional<std::string>> FileBackend::forget_file(const std::string& file, std::int64_t newest) {
  const std::optional<std::string> nothing;
  const std::string path = directory_.path_of(file);
  const auto name_in = [&](const RecordContent& content) {
    const auto* read = std::get_if<ReadRecord>(&content);
    const bool old = read != nullptr && newest >= 0 && read->record.token <= static_cast<std::uint64_t>(newest);
    return old ? lock_name_of(file, content) : nothing;
  };
  auto existing = directory_.open_existing(file);
  if (!existing.ok()) return existing.failure();
  if (!existing.value()) return nothing;
  auto seen = glimpse(existing.value()->get(), path);
  if (!seen.ok()) return seen.failure();
  if (seen.value().held || !name_in(seen.value().record)) return nothing;

  auto opened = directory_.open_to_lock(file);
  if (!opened.ok()) return opened.failure();
  if (!opened.value().fd) return nothing;
  auto lock = take_lock(opened.value().fd.get(), path);
  if (!lock.ok()) return lock.failure();
  auto found = find_file(path);
  if (!found.ok()) return found.failure();
  if (lock.value() == LockState::busy || found.value() != opened.value().identity) return nothing;
  auto content = read_content(opened.value().fd.get(), path);
  if (!content.ok()) return content.failure();
  auto name = name_in(content.value().record);
  if (!name) return nothing;
  if (auto problem = directory_.remove(file)) return *problem;
  return name;
}

}  // namespace dlock::file
