#include "backends/postgres/session_locks/holders.hpp"

#include <algorithm>
#include <string>

namespace dlock::postgres {

Holders::Holders(BackendHost& host, const Options& options, const Dialling& dialling, const AdvisorySql& sql,
                 std::size_t sessions, std::size_t most_locks, const std::function<void()>& when_quiet)
    : news_(host, true) {
  const HolderSession::Limit limit{.most_locks = most_locks, .taken = [this] { return sum(&HolderSession::taken); }};
  while (sessions_.size() < sessions) {
    sessions_.push_back(std::make_unique<HolderSession>(host, options, dialling, sql, limit, news_, when_quiet));
  }
}

Holders::~Holders() = default;

HolderSession& Holders::of(const LockKey& key) {
  return *sessions_[std::hash<std::string>{}(key.parameter) % sessions_.size()];
}

// Where there is a connection already, if there is one.
void Holders::ask(Query query) {
  const auto ready = std::find_if(sessions_.begin(), sessions_.end(), [](const auto& each) { return each->ready(); });
  (ready == sessions_.end() ? sessions_.front() : *ready)->ask(std::move(query));
}

bool Holders::release(const OwnerId& owner, const Backend::ReleaseHandler& done) {
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [&](const auto& session) { return session->release(owner, done); });
}

bool Holders::quiet() const noexcept {
  return std::all_of(sessions_.begin(), sessions_.end(), [](const auto& session) { return session->quiet(); });
}

std::size_t Holders::sum(std::size_t (HolderSession::*count)() const noexcept) const noexcept {
  std::size_t sum = 0;
  for (const auto& session : sessions_) sum += (*session.*count)();
  return sum;
}

}  // namespace dlock::postgres
