// The locks that this client holds.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include <dlock/spi/lifetime.hpp>

#include "backends/common/session_holds.hpp"
#include "backends/etcd/connection/client.hpp"
#include "backends/etcd/connection/watches.hpp"

namespace dlock::etcd {

// The key of a lock that is held.
struct HeldKey {
  std::string key;
  std::int64_t created;         // the revision
  std::int64_t seen = created;  // the latest one in which it was there, as far as is known
};

// By their keys. In tasks only.
class Holds final : public common::SessionHolds<HeldKey, Watches::Interest> {
 public:
  // Where what is not to stay is given to.
  using Remove = std::function<void(const HeldKey& held, const OwnerId& owner)>;

  Holds(BackendHost& host, Client& client, Watches& watches, Remove remove);
  ~Holds();

  // A lock is ours; its token is the revision that created its key.
  void add(const Grant& grant, std::string key);

 private:
  void look(const OwnerId& owner, Hold& hold) override;
  void remove(const OwnerId& owner, HeldKey held) override { remove_(held, owner); }
  void told(const OwnerId& owner, Watches::News news, std::int64_t revision);
  void read(const OwnerId& owner, const std::string& key);
  void read_key(const OwnerId& owner, const Result<TransactionAnswer>& answer);

  Client& client_;
  Watches& watches_;
  const Remove remove_;
  Lifetime lifetime_;
};

}  // namespace dlock::etcd
