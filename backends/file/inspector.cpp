#include "backends/file/inspector.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "backends/file/file_name.hpp"

#include "util/names.hpp"

namespace dlock::file {

namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { (void)::closedir(directory); }  // it was only read
};

// The name of the lock that a file belongs to; nullopt for a stranger's file.
std::optional<std::string> lock_name_of(const std::string& file, const RecordContent& content) {
  const auto* read = std::get_if<ReadRecord>(&content);
  auto name = read != nullptr && read->name ? read->name : decode_file_name(file);
  if (!name || util::problem_with_name(*name) || encode_file_name(*name) != file) return std::nullopt;
  return name;
}

}  // namespace

Result<Inspector::LockSnapshot> Inspector::snapshot(int fd, const std::string& path) const {
  constexpr int attempts = 3;  // a holder that is just writing its record may be caught half-way
  LockSnapshot seen;
  for (int i = 0; i < attempts; ++i) {
    if (kind_ != LockKind::read_write) {
      auto lock = look_at_lock(fd, path, LockType::write, several_ ? whole_byte : ByteRange{});
      if (!lock.ok()) return lock.failure();
      seen.held = seen.in_use = lock.value() == LockState::busy;
    }
    if (several_) {
      auto holders = holders_in_slots(fd, path, kind_);
      if (!holders.ok()) return holders.failure();
      seen.holders = std::move(holders.value());
      seen.held = !seen.holders.empty();
    }
    auto content = read_content(fd, path, kind_);
    if (!content.ok()) return content.failure();
    seen.record = std::move(content.value().record);
    if (std::holds_alternative<BadRecord>(seen.record)) continue;
    const auto* const read = std::get_if<ReadRecord>(&seen.record);
    if (kind_ != LockKind::election || !seen.held || read == nullptr) break;
    seen.value = parse_value(read_text(fd, record_end, max_value_text), read->record.owner);
    if (seen.value) break;
  }
  return seen;
}

LockInfo Inspector::describe(std::string name, const LockSnapshot& seen) const {
  // A holder that has not written its record yet does not know of its lead, either.
  const bool held = seen.held && (kind_ != LockKind::election || seen.value);
  LockInfo info{.name = std::move(name), .held = held, .kind = kind_};
  for (const SlotHolder& each : seen.holders) info.holders.push_back(each.info);
  if (const auto* read = std::get_if<ReadRecord>(&seen.record)) {
    info.token = FencingToken(read->record.token);
    if (held) info.holder = read->record.holder;
    if (seen.in_use) info.permits = read->record.permits;
  }
  // LockInfo::holder is the one with the oldest lease.
  if (!info.holders.empty()) info.holder = info.holders.front().holder;
  info.value = seen.value.value_or("");
  return info;
}

Result<LockInfo> Inspector::inspect(const std::string& name) {
  const std::string file = encode_file_name(name);
  if (auto problem = losses_.check_directory()) return *problem;
  auto existing = directory_.open_existing(file);
  if (!existing.ok()) return existing.failure();
  if (!existing.value()) return LockInfo{.name = name, .kind = kind_};
  const std::string path = directory_.path_of(file);
  auto seen = snapshot(existing.value()->get(), path);
  if (!seen.ok()) return seen.failure();
  if (auto problem = problem_with(seen.value().record, name, path)) return *problem;
  return describe(name, seen.value());
}

Result<std::vector<std::string>> Inspector::entries() {
  if (auto problem = losses_.check_directory()) return *problem;
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

Result<std::vector<LockInfo>> Inspector::list() {
  auto files = entries();
  if (!files.ok()) return files.failure();
  std::vector<LockInfo> locks;
  for (const auto& file : files.value()) {
    auto existing = directory_.open_existing(file);
    if (!existing.ok() || !existing.value()) continue;  // we may not read it; diagnose() counts those
    auto seen = snapshot(existing.value()->get(), directory_.path_of(file));
    if (!seen.ok()) continue;
    auto name = lock_name_of(file, seen.value().record);
    const bool remembered = std::holds_alternative<ReadRecord>(seen.value().record);
    if (name && (seen.value().held || remembered)) locks.push_back(describe(std::move(*name), seen.value()));
  }
  std::sort(locks.begin(), locks.end(), [](const LockInfo& a, const LockInfo& b) { return a.name < b.name; });
  return locks;
}

std::string Inspector::who_holds(const std::string& name) {
  const std::string file = encode_file_name(name);
  auto existing = directory_.open_existing(file);
  if (!existing.ok() || !existing.value()) return {};
  auto seen = snapshot(existing.value()->get(), directory_.path_of(file));
  const auto* read = seen.ok() && seen.value().held ? std::get_if<ReadRecord>(&seen.value().record) : nullptr;
  if (read == nullptr || !read->belongs_to(name)) return {};
  std::vector<SlotHolder>& holders = seen.value().holders;
  if (!several_) holders.push_back({.info = {.holder = read->record.holder}, .pid = read->record.pid});
  std::string text = "; " + std::string(to_string(kind_)) + " \"" + name + "\" is held by";
  for (const SlotHolder& each : holders) {
    text += (&each == holders.data() ? " process " : ", process ") + std::to_string(each.pid) + " (" +
            each.info.holder + ")";
  }
  return text + (holders.size() == 1 ? ", which has" : ", which have") + " to end or release it";
}

Result<std::vector<std::string>> Inspector::forget(const Forgetting& what) {
  constexpr std::size_t most = 1000;  // in one call, which holds up everything else that this client does
  if (auto problem = losses_.check_directory()) return *problem;
  Result<std::vector<std::string>> files = std::vector<std::string>{encode_file_name(what.name)};
  if (what.name.empty()) files = entries();
  if (!files.ok()) return files.failure();
  const std::int64_t newest = microseconds(client_.host.executor().clock().wall_now()) -
                              std::chrono::ceil<std::chrono::microseconds>(what.idle).count();
  std::vector<std::string> removed;
  std::optional<Failure> problem;
  for (const auto& file : files.value()) {
    if (removed.size() == most) break;
    auto forgotten = forget_file(file, newest);
    if (forgotten.ok() && forgotten.value()) removed.push_back(*std::move(forgotten.value()));
    // A file that is no lock file is skipped.
    if (!forgotten.ok() && forgotten.failure().code != errc::protocol) problem = forgotten.failure();
  }
  if (removed.empty() && problem) return *problem;
  return removed;
}

// A process that opened the file before its removal gets no lock on it: after locking, it checks that the path leads to
// it, and tries again. A try while the lock is taken here finds it busy, so the lock is taken only if the file is
// likely to be removed.
Result<std::optional<std::string>> Inspector::forget_file(const std::string& file, std::int64_t newest) {
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
  auto seen = snapshot(existing.value()->get(), path);
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
  auto content = read_content(opened.value().fd.get(), path, kind_);
  if (!content.ok()) return content.failure();
  auto name = name_in(content.value().record);
  if (!name) return nothing;
  if (auto problem = directory_.remove(file)) return *problem;
  return name;
}

}  // namespace dlock::file
