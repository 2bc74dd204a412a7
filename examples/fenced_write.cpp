// Why leases carry a token, and what to do with it. A holder that was paused for longer than its lease does not know
// that somebody else is at work by now. The resource can know: it refuses whoever comes with an older token than the
// newest that it has seen.
//
//   fenced_write [URL]
#include <cstdint>
#include <iostream>
#include <map>
#include <string>

#include <dlock/dlock.hpp>

namespace {

// Stands for a table `accounts (id, balance, fence)`. In SQL, one statement that writes and checks:
//
//   update accounts set balance = $1, fence = $2 where id = $3 and fence <= $2
//
// and a look at the number of rows that it changed: 0 means refused. `<=`, so that one holder may write many times.
class Accounts {
 public:
  bool set_balance(const std::string& id, int balance, dlock::FencingToken token) {
    Row& row = rows_[id];
    if (row.fence > token.value()) return false;
    row = {balance, token.value()};
    return true;
  }
  [[nodiscard]] int balance(const std::string& id) const { return rows_.at(id).balance; }

 private:
  struct Row {
    int balance = 0;
    std::uint64_t fence = 0;
  };
  std::map<std::string, Row> rows_;
};

void write(Accounts& accounts, const std::string& who, int balance, const dlock::Lease& lease) {
  const bool accepted = accounts.set_balance("42", balance, lease.token());
  std::cout << who << " writes " << balance << ": " << (accepted ? "accepted" : "refused") << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "memory://";
  try {
    Accounts accounts;
    const dlock::Client one = dlock::connect(url, {.label = "first"});
    const dlock::Client two = dlock::connect(url, {.label = "second"});
    if (!one.capabilities().can_break) {
      std::cout << "this service never takes a lock from a paused holder\n";
      return 0;
    }

    dlock::DistributedLock lock = one.make_lock("accounts/42");
    const dlock::Lease first = lock.acquire();
    write(accounts, "the first holder", 100, first);

    // Now the first holder is paused for a minute: swapped out, suspended, cut off. Its lease runs out, or an operator
    // breaks the lock, which comes to the same and needs no minute here.
    (void)two.break_lock("accounts/42");
    dlock::DistributedLock same_lock = two.make_lock("accounts/42");
    const dlock::Lease second = same_lock.acquire();
    write(accounts, "the second holder", 250, second);

    // And now it goes on where it was, in the middle of a write, with nobody asking lease.held() any more.
    write(accounts, "the first holder", 175, first);
    std::cout << "the balance is " << accounts.balance("42") << '\n';
  } catch (const dlock::Error& e) {
    std::cerr << "fenced_write: " << e.what() << '\n';
    return 1;
  }
}
