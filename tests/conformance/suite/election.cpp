// Rules of elections beyond those of every lock: who leads is seen, and what it says of itself.
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(election)

class ElectionContract : public SubjectContract {};
INSTANTIATE_TEST_SUITE_P(, ElectionContract, ::testing::ValuesIn(subjects_with(LockKind::election)), name_of_subject);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ElectionContract);

namespace {

using namespace std::chrono_literals;

// The news of an observer: an event for each leader, by its value.
class Seen {
 public:
  [[nodiscard]] Observation observe(const Election& election) {
    return election.observe([this](const std::optional<Leader>& leader) { of(leader ? leader->value : "").set(); });
  }
  [[nodiscard]] Event& leader(const std::string& value) { return of(value); }
  [[nodiscard]] Event& nobody() { return of(""); }

 private:
  Event& of(const std::string& value) {
    const std::scoped_lock lock(mutex_);
    return events_[value];
  }

  std::mutex mutex_;
  std::map<std::string, Event> events_;
};

Lease lead(Election& election, CampaignOptions options) {
  options.wait = guard();
  return election.campaign(options);
}

}  // namespace

// Shows: elections
TEST_P(ElectionContract, C01_OneLeadsAndAllSeeItsValue) {
  Election one = client({.label = "one"}).make_election(name());
  Election two = client({.label = "two"}).make_election(name());
  EXPECT_EQ(two.leader(), std::nullopt);
  Lease leading = lead(one, {.value = "10.0.0.7:80"});
  EXPECT_FALSE(two.try_campaign({.value = "10.0.0.8:80"}).has_value());
  const std::optional<Leader> leader = two.leader();
  ASSERT_TRUE(leader.has_value());
  EXPECT_EQ(leader->value, "10.0.0.7:80");
  EXPECT_TRUE(leader->holder.ends_with(":one")) << leader->holder;
  EXPECT_EQ(leader->token, leading.token());
  EXPECT_TRUE(leading.release());
  EXPECT_EQ(two.leader(), std::nullopt);
  const Lease next = lead(two, {.value = "10.0.0.8:80"});
  ASSERT_TRUE(one.leader().has_value());
  EXPECT_EQ(one.leader()->value, "10.0.0.8:80");
}

// Shows: elections
TEST_P(ElectionContract, C01_RunNeverOverlapsAndEndsWhenItIsStopped) {
  Client& first = client();
  Client& second = client();
  Room room;
  Event led;
  std::stop_source stop;
  {
    std::vector<Thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        Election election = (i % 2 == 0 ? first : second).make_election(name());
        election.run(stop.get_token(), [&](const Lease& lease, const std::stop_token& /*over*/) {
          room.visit(lease.held());
          led.set();
        });
      });
    }
    led.wait("candidates do not lead one after the other", 12);
    stop.request_stop();
  }
  EXPECT_EQ(room.meetings(), 0);
  await_no_residue(name());
  // An attempt that was under way may have come to lead, and gives that back.
  while (first.make_election(name()).leader()) std::this_thread::yield();
}

TEST_P(ElectionContract, C03_WhoLosesTheLeadIsAskedToStopAndCampaignsAgain) {
  DLOCK_NEEDS(kill_hold);
  Election election = client().make_election(name());
  Event led;
  std::stop_source stop;
  const Thread candidate([&] {
    election.run(stop.get_token(), {.value = "a", .lease = lease()}, [&](const Lease&, const std::stop_token& over) {
      Event ended;
      const std::stop_callback on_end(over, [&] { ended.set(); });
      led.set();
      ended.wait("a leader that lost the lead, or was stopped, is not told to end");
    });
  });
  led.wait("a candidate does not lead");
  fixture().kill_hold(LockKind::election, name());
  led.wait("a candidate that lost the lead does not lead again", 2);
  stop.request_stop();
}

// Shows: elections
TEST_P(ElectionContract, C07_WhenALeaderDiesTheNextOneLeadsAndIsSeen) {
  DLOCK_APPLIES_IF(caps().lease_kind != LeaseKind::process, "leases do not run out by time");
  step_time_if_possible();
  Election dying = client().make_election(name());
  Election living = client().make_election(name());
  Seen seen;
  const Observation observation = seen.observe(client().make_election(name()));
  {  // observers that have to ask may miss who leads for a moment
    const Lease leading = lead(dying, {.value = "dying"});
    pass_until(seen.leader("dying"), "a leader is not seen");
  }
  const Lease leading = lead(dying, {.value = "dying", .lease = lease(), .renew = false});
  std::optional<Lease> next;
  Event won;
  living.async_campaign({.value = "living"}, [&](std::error_code, Lease lease) {
    next = std::move(lease);
    won.set();
  });
  pass_until(won, "nobody leads after a leader has died");
  EXPECT_TRUE(next->held());
  EXPECT_FALSE(leading.held());
  pass_until(seen.leader("living"), "the next leader is not seen");
}

TEST_P(ElectionContract, C12_ObserversSeeWhoComesAndGoes) {
  Client& candidates = client();
  Election one = candidates.make_election(name());
  Election two = candidates.make_election(name());
  Seen seen;
  const Observation observation = seen.observe(client().make_election(name()));
  seen.nobody().wait("an observer is not told that nobody leads");
  for (int round = 0; round < 3; ++round) {
    Election& election = round % 2 == 0 ? one : two;
    const std::string value = "round " + std::to_string(round);
    const Lease leading = lead(election, {.value = value});
    seen.leader(value).wait("a leader is not seen");
  }
  seen.nobody().wait("it is not seen that the leader has gone", 2);
}

// Shows: elections
TEST_P(ElectionContract, C12_AnObserverThatWasCutOffSeesTheNewest) {
  DLOCK_NEEDS(cut);
  Election election = client().make_election(name());
  Seen seen;
  const Observation observation = seen.observe(client(impatient(), Link::disturbed).make_election(name()));
  std::optional<Lease> leading = lead(election, {.value = "before"});
  seen.leader("before").wait("a leader is not seen");
  fixture().cut();
  leading.reset();
  leading = lead(election, {.value = "after"});
  fixture().heal();
  seen.leader("after").wait("an observer that was cut off does not see the newest leader");
}

// Shows: elections
TEST_P(ElectionContract, C12_AnObserverIsToldNothingAfterItsEnd) {
  Election election = client().make_election(name());
  Seen ended;
  Seen other;
  std::optional<Observation> observation(ended.observe(election));
  const Observation others = other.observe(election);
  ended.nobody().wait("an observer is not told that nobody leads");
  observation.reset();
  const Lease leading = lead(election, {.value = "a"});
  other.leader("a").wait("a leader is not seen");
  EXPECT_FALSE(ended.leader("a").happened());
}

TEST_P(ElectionContract, C14_ValuesAreData) {
  DLOCK_APPLIES_IF(caps().can_inspect, "locks cannot be inspected");
  Client& asking = client();
  Election election = asking.make_election(name());
  for (const std::string& value :
       {std::string(), std::string("a\\b'\"$1:{x}%;--"), std::string("Ünï 鍵 🔒"), std::string(1024, 'x')}) {
    const Lease leading = lead(election, {.value = value});
    const LockInfo info = asking.inspect(name(), LockKind::election);
    EXPECT_EQ(info.kind, LockKind::election);
    EXPECT_EQ(info.value, value);
    EXPECT_EQ(info.holder, asking.holder());
    EXPECT_FALSE(asking.inspect(name()).held) << "kinds do not touch each other";
  }
}

TEST_P(ElectionContract, C14_ValuesThatAreNoGoodLeaveNothing) {
  Election election = client().make_election(name());
  for (const std::string& value : {std::string(1025, 'x'), std::string("a\nb"), std::string("\xff")}) {
    std::error_code error;
    EXPECT_FALSE(election.campaign({.value = value}, error).has_value());
    EXPECT_EQ(error, errc::invalid_argument);
  }
  await_no_residue(name());
  EXPECT_EQ(election.leader(), std::nullopt);
}

}  // namespace dlock::conformance
