// Several locks at once: money moves between two accounts, which no other transfer may touch meanwhile. A MultiLock
// takes all of them or none, in an order that is the same for all clients, so that transfers in opposite directions
// never deadlock.
//
//   transfer [URL]
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <thread>

#include <dlock/dlock.hpp>

using namespace std::chrono_literals;

namespace {

// Stands for a row of a database that remembers the newest token; see fenced_write.cpp.
struct Account {
  int balance = 0;
  std::uint64_t fence = 0;
};
using Accounts = std::map<std::string, Account>;

void move(const dlock::Client& client, Accounts& accounts, const std::string& from, const std::string& to, int amount) {
  dlock::MultiLock both = client.make_multi_lock({"accounts/" + from, "accounts/" + to});
  dlock::with_lock(both, {.wait = 30s}, [&](const dlock::MultiLease& leases) {
    // Leases and tokens have the order in which the locks were named.
    const std::uint64_t from_token = leases.token(0).value();
    const std::uint64_t to_token = leases.token(1).value();
    Account& source = accounts.at(from);
    Account& target = accounts.at(to);
    if (source.fence > from_token || target.fence > to_token) return;  // others hold the locks by now
    source = {source.balance - amount, from_token};
    target = {target.balance + amount, to_token};
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "memory://";
  try {
    Accounts accounts{{"alice", {1000}}, {"bob", {1000}}};
    {
      const auto transfer = [&](const std::string& from, const std::string& to) {
        const dlock::Client client = dlock::connect(url, {.label = from});
        for (int i = 0; i < 100; ++i) move(client, accounts, from, to, 5);
      };
      const std::jthread forth(transfer, "alice", "bob");
      const std::jthread back(transfer, "bob", "alice");
    }
    std::cout << "alice has " << accounts.at("alice").balance << ", bob has " << accounts.at("bob").balance << '\n';

    // All or nothing: if one account is locked, the other is not kept.
    const dlock::Client client = dlock::connect(url);
    const dlock::Lease audit = client.make_lock("accounts/bob").acquire();
    dlock::MultiLock both = client.make_multi_lock({"accounts/alice", "accounts/bob"});
    std::cout << (both.try_acquire() ? "unexpected: got both" : "bob is being looked at") << '\n';
    std::cout << (client.make_lock("accounts/alice").try_acquire() ? "alice is free" : "unexpected: alice is kept")
              << '\n';
  } catch (const dlock::Error& e) {
    std::cerr << "transfer: " << e.what() << '\n';
    return 1;
  }
}
