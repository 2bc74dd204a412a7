// Why leases carry a token, and what to do with it. A holder that was paused for longer than its lease does not know
// that another holder works by now. The database can know: it remembers the greatest token of each lock, and refuses a
// transaction with a smaller one.
//
//   fenced_write [URL]
//
// The fence belongs to the lock, not to a row. With a fence in each row, a former holder could still write the rows
// that the new holder has not written yet.
#include <cstdint>
#include <iostream>
#include <map>
#include <string>

#include <dlock/dlock.hpp>

namespace {

// Stands for a database with the tables `accounts (id, balance)` and `fences (lock, token)`. In SQL, each transaction
// begins with
//
//   INSERT INTO fences (lock, token) VALUES ($1, $2)
//     ON CONFLICT (lock) DO UPDATE SET token = excluded.token WHERE fences.token <= excluded.token
//
// and is rolled back if that changes no row. `<=`, so that a holder may have many transactions. See docs/recipes.md.
class Database {
 public:
  // A transaction under the lock: runs `work` on the accounts. False: refused, because of a newer holder.
  template <class Work>
  bool transaction(const dlock::Lease& lease, Work&& work) {
    std::uint64_t& fence = fences_[lease.name()];
    if (lease.token().value() < fence) return false;
    fence = lease.token().value();
    work(accounts_);
    return true;
  }
  [[nodiscard]] int total() const {
    int sum = 0;
    for (const auto& [id, balance] : accounts_) sum += balance;
    return sum;
  }

 private:
  std::map<int, int> accounts_{{41, 1000}, {42, 1000}, {43, 1000}};
  std::map<std::string, std::uint64_t> fences_;
};

void pay_interest(Database& database, const std::string& who, int id, const dlock::Lease& lease) {
  const bool accepted = database.transaction(lease, [&](auto& accounts) { accounts.at(id) += 10; });
  std::cout << who << " pays interest to account " << id << ": " << (accepted ? "accepted" : "refused") << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "memory://";
  try {
    Database database;
    const dlock::Client one = dlock::connect(url, {.label = "first"});
    const dlock::Client two = dlock::connect(url, {.label = "second"});
    if (!one.capabilities().can_break) {
      std::cout << "this service never takes a lock from a paused holder\n";
      return 0;
    }

    const dlock::Lease first = one.make_lock("interest").acquire();
    pay_interest(database, "the first holder", 41, first);

    // Now the first holder is paused for a minute: swapped out, suspended, cut off. Its lease expires. To spare the
    // minute, an operator breaks the lock here.
    (void)two.break_lock("interest");
    const dlock::Lease second = two.make_lock("interest").acquire();
    int paid = 0;  // it reads what is left to do. From here on, the fence refuses the first holder
    (void)database.transaction(second, [&](const auto& accounts) {
      for (const auto& [id, balance] : accounts) paid += balance > 1000 ? 1 : 0;
    });
    std::cout << "the second holder finds " << paid << " account done\n";
    pay_interest(database, "the second holder", 42, second);

    // The first holder goes on where it was, without a check of lease.held(). No other holder has written this row.
    pay_interest(database, "the first holder", 43, first);

    pay_interest(database, "the second holder", 43, second);
    std::cout << "all accounts have " << database.total() << '\n';
  } catch (const dlock::Error& e) {
    std::cerr << "fenced_write: " << e.what() << '\n';
    return 1;
  }
}
