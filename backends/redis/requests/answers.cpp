#include "backends/redis/requests/answers.hpp"

#include "backends/redis/connection/server_error.hpp"
#include "backends/redis/requests/scripts.hpp"
#include "util/names.hpp"
#include "util/number.hpp"

namespace dlock::redis {

using std::chrono::milliseconds;
using Type = Reply::Type;

namespace {

milliseconds saturate(std::int64_t ms) {
  constexpr auto most = std::chrono::duration_cast<milliseconds>(std::chrono::nanoseconds::max());
  return std::min(milliseconds(ms), most);
}

// Tokens are decimal text, because Redis's integers may be but Lua's numbers are not exact. Always below 2^63.
std::optional<FencingToken> parse_token(std::string_view text) {
  const auto value = util::parse_number<std::int64_t>(text);
  if (!value || *value <= 0) return std::nullopt;
  return FencingToken(static_cast<std::uint64_t>(*value));
}

bool is_array_of(const Reply& reply, std::size_t size) {
  return reply.is(Type::array) && reply.elements.size() == size;
}

bool is_flag(const Reply& reply) {
  return reply.is(Type::integer) && (reply.integer == 0 || reply.integer == 1);
}

// "token value holder"; a holder may contain spaces.
struct FenceRecord {
  FencingToken token;
  std::string_view value;
  std::string_view holder;
};

std::optional<FenceRecord> parse_fence(std::string_view text) {
  const std::size_t first = text.find(' ');
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = text.find(' ', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const auto token = parse_token(text.substr(0, first));
  if (!token) return std::nullopt;
  return FenceRecord{*token, text.substr(first + 1, second - first - 1), text.substr(second + 1)};
}

}  // namespace

// The layout of each script's reply is at the head of its file, in backends/redis/scripts.

Result<AcquireAnswer> read_acquire(const Reply& reply) {
  constexpr std::int64_t busy = 0;
  constexpr std::int64_t refused = 2;
  constexpr std::int64_t never_expires = -1;
  constexpr std::int64_t free_behind_dead = -2;
  constexpr std::int64_t not_queued = -1;
  const auto refuse = [&] { return unexpected("the acquire script", reply); };
  if (reply.is(Type::string)) {
    const auto token = parse_token(reply.text);
    if (!token) return refuse();
    return AcquireAnswer{.granted = true, .token = *token};
  }
  const auto& fields = reply.elements;
  if (is_array_of(reply, 2) && fields[0].is(Type::integer) && fields[0].integer == refused &&
      fields[1].is(Type::integer) && fields[1].integer > 0 &&
      fields[1].integer <= std::numeric_limits<std::int32_t>::max()) {
    return AcquireAnswer{.other_permits = static_cast<std::uint32_t>(fields[1].integer)};
  }
  if (!is_array_of(reply, 5)) return refuse();
  if (!fields[0].is(Type::integer) || fields[0].integer != busy) return refuse();
  if (!fields[1].is(Type::integer) || !fields[2].is(Type::integer) || !is_flag(fields[3])) return refuse();
  if (!fields[4].is(Type::integer)) return refuse();
  const std::int64_t ms = fields[1].integer;
  const std::int64_t rank = fields[2].integer;
  const std::int64_t ticket = fields[4].integer;
  if (ms < free_behind_dead || rank < not_queued || ticket < 0) return refuse();
  AcquireAnswer answer;
  answer.more = ms == free_behind_dead;
  if (ms != never_expires) answer.free_in = answer.more ? milliseconds(0) : saturate(ms);
  if (rank != not_queued) answer.rank = static_cast<std::uint64_t>(rank);
  answer.joined = fields[3].integer == 1;
  answer.ticket = static_cast<std::uint64_t>(ticket);
  return answer;
}

Result<bool> read_renew(const Reply& reply) {
  if (!is_flag(reply)) return unexpected("the renew script", reply);
  return reply.integer == 1;
}

Result<bool> read_forget(const Reply& reply) {
  if (!is_flag(reply)) return unexpected("the forget script", reply);
  return reply.integer == 1;
}

Result<ReleaseAnswer> read_release(const Reply& reply) {
  const auto refuse = [&] { return unexpected("the release script", reply); };
  if (reply.is(Type::integer) && reply.integer == 1) return ReleaseAnswer{.was = ReleaseAnswer::Was::ours};
  if (!is_array_of(reply, 3)) return refuse();
  const Reply& was = reply.elements[0];
  if (!was.is(Type::integer) || !is_flag(reply.elements[1]) || !is_flag(reply.elements[2])) return refuse();
  const bool may_publish = reply.elements[1].integer == 1;
  const bool more = reply.elements[2].integer == 1;
  switch (was.integer) {
    case 1:
      return ReleaseAnswer{ReleaseAnswer::Was::ours, may_publish, more};
    case 0:
      return ReleaseAnswer{ReleaseAnswer::Was::somebody_elses, may_publish, more};
    case -1:
      return ReleaseAnswer{ReleaseAnswer::Was::free, may_publish, more};
    default:
      return refuse();
  }
}

namespace {

// The holders of a read-write lock or semaphore: remaining ms, whether it shares, "token holder", each.
Result<LockInfo> read_shared(const Reply& reply, const std::string& name, LockKind kind) {
  const auto refuse = [&] { return unexpected("the inspect script", reply); };
  if (!is_array_of(reply, 4)) return refuse();
  const Reply& permits = reply.elements[0];
  const Reply& last = reply.elements[1];
  const Reply& waiters = reply.elements[2];
  const Reply& holders = reply.elements[3];
  if (!permits.is(Type::integer) || permits.integer < 0 || !waiters.is(Type::integer) || waiters.integer < 0 ||
      !holders.is(Type::array) || holders.elements.size() % 3 != 0) {
    return refuse();
  }
  LockInfo info{.name = name, .held = !holders.elements.empty(), .kind = kind};
  info.waiters = static_cast<std::uint64_t>(waiters.integer);
  if (last.is(Type::string)) {
    const auto token = parse_token(last.text);
    if (!token) return refuse();
    info.token = *token;
  } else if (!last.is(Type::nil)) {
    return refuse();
  }
  for (std::size_t i = 0; i < holders.elements.size(); i += 3) {
    const Reply& remaining = holders.elements[i];
    const Reply& shares = holders.elements[i + 1];
    const Reply& record = holders.elements[i + 2];
    if (!remaining.is(Type::integer) || remaining.integer <= 0 || !is_flag(shares) || !record.is(Type::string)) {
      return refuse();
    }
    const bool reads = kind == LockKind::read_write && shares.integer == 1;
    HolderInfo holder{.mode = reads ? Mode::shared : Mode::exclusive, .remaining = saturate(remaining.integer)};
    if (const std::size_t end = record.text.find(' '); end != std::string::npos) {
      holder.token = parse_token(record.text.substr(0, end)).value_or(FencingToken());
      holder.holder = record.text.substr(end + 1);
    }
    if (!info.remaining || holder.remaining > info.remaining) {
      info.holder = holder.holder;
      info.remaining = holder.remaining;
    }
    info.holders.push_back(std::move(holder));
  }
  if (!info.held && waiters.integer == 0) return info;
  if ((permits.integer > 0) != (kind == LockKind::semaphore)) {
    return Failure{errc::protocol, "another kind of lock has the name " + util::quoted(name)};
  }
  info.permits = static_cast<std::uint32_t>(permits.integer);
  return info;
}

}  // namespace

Result<LockInfo> read_inspect(const Reply& reply, const std::string& name, LockKind kind) {
  if (several_hold(kind)) return read_shared(reply, name, kind);
  const auto refuse = [&] { return unexpected("the inspect script", reply); };
  if (!is_array_of(reply, 4)) return refuse();
  const Reply& value = reply.elements[0];
  const Reply& remaining = reply.elements[1];
  const Reply& fence = reply.elements[2];
  const Reply& waiters = reply.elements[3];
  const auto text_or_nil = [](const Reply& r) { return r.is(Type::string) || r.is(Type::nil); };
  if (!text_or_nil(value) || !text_or_nil(fence) || !remaining.is(Type::integer) || !waiters.is(Type::integer)) {
    return refuse();
  }
  if (remaining.integer < -2 || waiters.integer < 0) return refuse();
  LockInfo info{.name = name, .held = value.is(Type::string), .kind = kind};
  if (info.held && remaining.integer >= 0) info.remaining = saturate(remaining.integer);
  info.waiters = static_cast<std::uint64_t>(waiters.integer);
  if (fence.is(Type::string)) {
    const auto record = parse_fence(fence.text);
    if (!record) return Failure{errc::protocol, "the lock's fence key holds " + util::quoted(fence.text)};
    info.token = record->token;
    const bool confirmed = record->value == value.text;
    if (info.held && confirmed) set_holder(info, record->holder);
    // The new leader has not confirmed its grant yet.
    if (kind == LockKind::election && !confirmed) {
      info.held = false;
      info.remaining.reset();
    }
  }
  return info;
}

Failure too_few_replicas(std::uint64_t replicas, std::uint64_t wanted, const std::string& write) {
  return {errc::unavailable,
          std::to_string(replicas) + " of " + std::to_string(wanted) + " replicas acknowledged " + write + " in time"};
}

}  // namespace dlock::redis
