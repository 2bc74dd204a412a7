#include <dlock/client.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include <dlock/backend.hpp>

#include "core/client/client_core.hpp"
#include "core/client/lock_impl.hpp"
#include "core/shard/blocking.hpp"
#include "core/shard/failures.hpp"
#include "util/names.hpp"

namespace dlock {

namespace {

// Asks the backend something and waits for the answer.
template <class T>
Result<T> ask(detail::ClientCore& core, std::function<void(Backend&, Backend::Handler<T>)> question) {
  struct Answer {
    util::Event arrived;
    std::optional<Result<T>> result;
  };
  const auto answer = std::make_shared<Answer>();
  const Backend::Handler<T> done = [answer](Result<T> result) {
    answer->result = std::move(result);
    answer->arrived.set();
  };
  core.with_backend([question = std::move(question), done](Backend* backend) {
    if (backend == nullptr) {
      done(detail::failures::closed());
    } else {
      question(*backend, done);
    }
  });
  if (!detail::block_until(core.context(), answer->arrived, detail::response_limit(core.context()))) {
    return Failure{errc::unavailable, "the service did not answer in time"};
  }
  return *std::move(answer->result);
}

template <class T>
T value_or_throw(Result<T> result) {
  if (!result.ok()) throw Error(result.failure());
  return std::move(result.value());
}

// Why the service still remembers a name; nothing if it does not.
std::optional<Failure> why_kept(const LockInfo& info) {
  const std::string lock = "lock " + util::quoted(info.name);
  if (info.held)
    return Failure{errc::timed_out, lock + " is held by " + (info.holder.empty() ? "somebody" : info.holder)};
  if (info.waiters.value_or(0) > 0) return Failure{errc::timed_out, lock + " is waited for"};
  if (info.token.value() == 0) return std::nullopt;
  return Failure{errc::timed_out, lock +
                                      " cannot be forgotten yet: it was in use within the last minute, somebody is "
                                      "about to use it, or its last token, " +
                                      std::to_string(info.token.value()) + ", is ahead of the service's clock"};
}

void require_good_name(std::string_view name) {
  if (const auto problem = util::problem_with_name(name)) throw Error(errc::invalid_argument, *problem);
}

}  // namespace

Client::Client(std::shared_ptr<detail::ClientCore> core) noexcept : core_(std::move(core)) {}

Client::Client(Client&&) noexcept = default;

Client& Client::operator=(Client&& other) noexcept {
  if (this != &other) {
    Client old(std::exchange(core_, std::exchange(other.core_, nullptr)));
  }
  return *this;
}

Client::~Client() {
  if (core_) core_->close();
}

DistributedLock Client::lock(std::string name) const& {
  require_good_name(name);
  const auto& shard = core_->shard_of(name);
  return DistributedLock(std::make_unique<detail::LockImpl>(shard, std::move(name)));
}

Capabilities Client::capabilities() const noexcept {
  return core_->context().capabilities;
}

Stats Client::stats() const noexcept {
  return core_->stats();
}

const std::string& Client::url() const noexcept {
  return core_->context().redacted_url;
}

const std::string& Client::holder() const noexcept {
  return core_->context().holder;
}

LockInfo Client::inspect(std::string_view name) const {
  require_good_name(name);
  return value_or_throw(ask<LockInfo>(
      *core_, [name = std::string(name)](Backend& backend, auto done) { backend.inspect(name, std::move(done)); }));
}

std::vector<LockInfo> Client::list() const {
  auto locks = value_or_throw(
      ask<std::vector<LockInfo>>(*core_, [](Backend& backend, auto done) { backend.list(std::move(done)); }));
  std::sort(locks.begin(), locks.end(), [](const LockInfo& a, const LockInfo& b) { return a.name < b.name; });
  return locks;
}

bool Client::break_lock(std::string_view name) const {
  require_good_name(name);
  return value_or_throw(ask<bool>(
      *core_, [name = std::string(name)](Backend& backend, auto done) { backend.break_lock(name, std::move(done)); }));
}

bool Client::forget(std::string_view name) const {
  require_good_name(name);
  const Forgetting what{.name = std::string(name), .idle = least_idle};
  const auto removed = value_or_throw(ask<std::vector<std::string>>(
      *core_, [what](Backend& backend, auto done) { backend.forget(what, std::move(done)); }));
  if (!removed.empty()) return true;
  if (!capabilities().can_inspect) return false;
  if (const auto reason = why_kept(inspect(name))) throw Error(*reason);
  return false;
}

std::vector<std::string> Client::forget_idle(Duration idle) const {
  const Forgetting what{.name = {}, .idle = idle.value()};
  if (what.idle < least_idle) {
    throw Error(errc::invalid_argument, "idle: names can be forgotten when they were not taken for a minute or longer");
  }
  auto removed = value_or_throw(ask<std::vector<std::string>>(
      *core_, [what](Backend& backend, auto done) { backend.forget(what, std::move(done)); }));
  std::sort(removed.begin(), removed.end());
  return removed;
}

std::vector<Finding> Client::diagnose() const {
  auto result =
      ask<std::vector<Finding>>(*core_, [](Backend& backend, auto done) { backend.diagnose(std::move(done)); });
  if (result.ok()) return std::move(result.value());
  if (result.failure().code == errc::closed) throw Error(result.failure());
  return {{Finding::Severity::error, "service", Error(result.failure()).what()}};
}

std::vector<std::string> Client::initialize() const {
  return value_or_throw(
      ask<std::vector<std::string>>(*core_, [](Backend& backend, auto done) { backend.initialize(std::move(done)); }));
}

}  // namespace dlock
