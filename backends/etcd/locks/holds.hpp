// The locks that this client holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include <dlock/spi/lifetime.hpp>

#include "backends/common/session_holds.hpp"
#include "backends/etcd/connection/client.hpp"
#include "backends/etcd/connection/watches.hpp"

namespace dlock::etcd {

// The key of an acquire, from the first request to create it until it is certainly gone.
struct OwnKey {
  std::string key;
  std::int64_t created = 0;    // the revision; 0: as far as is known, it does not exist
  std::uint64_t request = 0;   // the number of the last request to create it
  std::size_t unanswered = 0;  // requests to create it that may still be carried out

  [[nodiscard]] bool there() const noexcept { return created != 0; }
};

// The key of a lock that is held.
struct HeldKey : OwnKey {
  std::int64_t seen;  // the latest revision in which it is known to exist
};

// By their keys. In tasks only.
class Holds final : public common::SessionHolds<HeldKey, Watches::Interest> {
 public:
  // Removes the key of a lock that is no longer held.
  using Remove = std::function<void(OwnKey key, const OwnerId& owner)>;

  Holds(BackendHost& host, Client& client, Watches& watches, Remove remove);
  ~Holds();

  // The client holds a lock; its token is the revision that created its key.
  void add(const Grant& grant, OwnKey key);

 private:
  void look(const OwnerId& owner, Hold& hold) override;
  void remove(const OwnerId& owner, HeldKey held) override { remove_(std::move(held), owner); }
  void told(const OwnerId& owner, std::int64_t revision);
  void read_key(const OwnerId& owner, const Result<TransactionAnswer>& answer);

  Client& client_;
  Watches& watches_;
  const Remove remove_;
  Lifetime lifetime_;
};

}  // namespace dlock::etcd
