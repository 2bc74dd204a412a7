// The locks that this client holds: kept as long as the session is, and looked after in case that somebody else removes
// their keys.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include <dlock/backend.hpp>
#include <dlock/lifetime.hpp>

#include "backends/etcd/connection/client.hpp"
#include "backends/etcd/connection/watches.hpp"

namespace dlock::etcd {

// In tasks only.
class Holds {
 public:
  // Where what is not to stay is given to: the key of an owner, made in that revision.
  using Remove = std::function<void(const std::string& key, const OwnerId& owner, std::int64_t created)>;

  Holds(BackendHost& host, Client& client, Watches& watches, Remove remove);
  ~Holds();

  // A lock is ours; its token is the revision that created its key.
  void add(const Grant& grant, std::string key);
  // It is to be released: no more is told about it. nullopt: it is gone.
  [[nodiscard]] std::optional<std::string> take(const OwnerId& owner);

  void session_alive(TimePoint valid_until);
  void session_lost(const Failure& why);

 private:
  struct Hold;
  struct Due {
    TimePoint at;
    OwnerId owner;
  };

  [[nodiscard]] static std::string called(const Hold& hold);
  [[nodiscard]] Hold* find(const OwnerId& owner) const;
  void watch(const OwnerId& owner, Hold& hold);
  void watch_later(const OwnerId& owner);
  void watch_due();
  void look(const OwnerId& owner);
  void looked(const OwnerId& owner, const Result<std::string>& answer);
  void lose(const OwnerId& owner, Failure why);

  BackendHost& host_;
  Client& client_;
  Watches& watches_;
  const Remove remove_;
  std::unordered_map<OwnerId, std::unique_ptr<Hold>> holds_;
  std::deque<Due> due_;  // to be watched, the first one first
  Timer timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::etcd
