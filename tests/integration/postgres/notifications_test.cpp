// A queue of notifications that is full: somebody listens and takes none, because the session is in a transaction that
// does not end. Then the server refuses the commit of whatever notifies.
#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class FullOfNotificationsTest : public PostgresStrategyTest {
 protected:
  // To fill the server's takes 8 GB. So this is refused as that would be: by the commit, with its SQLSTATE.
  void fill_queue() {
    server.run("CREATE TABLE public.notified (payload text)");
    server.run(
        "CREATE FUNCTION public.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'too many notifications in the NOTIFY queue' USING ERRCODE = '54000'; END $$");
    server.run(
        "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON public.notified DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION public.full()");
    server.run("ALTER FUNCTION pg_catalog.pg_notify(text, text) RENAME TO pg_notify_as_it_was");
    server.run(
        "CREATE FUNCTION pg_catalog.pg_notify(text, text) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$ "
        "INSERT INTO public.notified VALUES ($2) $$");
  }
  void expect_full() {
    try {
      server.run("SELECT pg_catalog.pg_notify('some', 'thing')");
      ADD_FAILURE() << "the server notifies";
    } catch (const std::runtime_error& e) {
      EXPECT_NE(std::string(e.what()).find("too many notifications"), std::string::npos) << e.what();
    }
  }
};

TEST_P(FullOfNotificationsTest, LocksAreReleasedAllTheSame) {
  const Client holder = steady(patient());
  const Client other = steady(patient());
  std::vector<DistributedLock> locks;
  std::vector<DistributedLock> others;
  std::vector<Lease> leases;
  std::vector<std::unique_ptr<Pending>> waiting;
  for (int i = 0; i < 5; ++i) {
    const std::string name = "lock/" + std::to_string(i);
    locks.push_back(holder.make_lock(name));
    others.push_back(other.make_lock(name));
    leases.push_back(take(locks.back()));
  }
  for (DistributedLock& lock : others) waiting.push_back(std::make_unique<Pending>(lock, AcquireOptions{}));
  for (int i = 0; i < 5; ++i) await_waiter("lock/" + std::to_string(i));
  fill_queue();
  expect_full();
  EXPECT_TRUE(leases.back().release());
  leases.pop_back();
  for (Lease& lease : leases) EXPECT_TRUE(lease.release());
  // They ask by themselves now and then.
  for (const auto& each : waiting) EXPECT_TRUE(each->lease().held());
}

TEST_P(FullOfNotificationsTest, ALockIsBrokenAllTheSame) {
  const Client holder = steady(patient());
  const Client other = steady(patient());
  DistributedLock lock = holder.make_lock("broken");
  DistributedLock others = other.make_lock("broken");
  const Lease lease = take(lock);
  Pending waiting(others, {});
  await_waiter("broken");
  fill_queue();
  EXPECT_TRUE(other.break_lock("broken"));
  EXPECT_TRUE(waiting.lease().held());
}

INSTANTIATE_TEST_SUITE_P(Rows, FullOfNotificationsTest,
                         ::testing::ValuesIn(tested({Strategy::table, Strategy::optimistic})), strategy_name);

}  // namespace

}  // namespace dlock::test
