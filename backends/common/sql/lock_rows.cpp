#include "backends/common/sql/lock_rows.hpp"

#include <cstdint>
#include <utility>

#include <dlock/spi/backend.hpp>

namespace dlock::sql {

namespace {

LockInfo read_info(LockKind kind, const Rows& rows, std::size_t row) {
  LockInfo info{.name = rows.text(row, 0), .held = rows.flag(row, 1), .kind = kind};
  set_holder(info, rows.text(row, 2));
  info.token = FencingToken(static_cast<std::uint64_t>(rows.number(row, 3).value_or(0)));
  info.remaining = rows.duration(row, 4);
  if (const auto waiters = rows.number(row, 5)) info.waiters = static_cast<std::uint64_t>(*waiters);
  return info;
}

}  // namespace

std::vector<LockInfo> read_infos(LockKind kind, const Rows& rows) {
  std::vector<LockInfo> infos;
  infos.reserve(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    LockInfo info = read_info(kind, rows, row);
    const auto permits = rows.number(row, 6);
    if (info.held && permits) {
      const std::int64_t weight = rows.number(row, 7).value_or(0);
      const bool shared = kind == LockKind::read_write && weight != *permits;
      const auto token = static_cast<std::uint64_t>(rows.number(row, 8).value_or(0));
      info.holders.push_back(
          {info.holder, shared ? Mode::shared : Mode::exclusive, FencingToken(token), info.remaining});
      if (kind == LockKind::semaphore) info.permits = static_cast<std::uint32_t>(*permits);
    }
    if (infos.empty() || infos.back().name != info.name || info.holders.empty()) {
      infos.push_back(std::move(info));
      continue;
    }
    LockInfo& lock = infos.back();
    lock.holders.push_back(std::move(info.holders.front()));
    if (info.remaining <= lock.remaining) continue;
    lock.holder = info.holder;
    lock.remaining = info.remaining;
  }
  return infos;
}

}  // namespace dlock::sql
