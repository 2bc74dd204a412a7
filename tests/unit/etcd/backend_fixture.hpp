// A backend against an etcd in memory, on a clock that the test moves.
#pragma once

#include "backends/etcd/etcd_backend.hpp"

#include <optional>

#include "fake_etcd.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::etcd {

class EtcdFixture : public testing::Test {
 protected:
  using Attempt = dlock::test::Attempt;
  using Fate = FakeEtcd::Fate;

  std::unique_ptr<EtcdBackend> make(const std::string& url = "etcd://a,b,c?session_ttl=10s") {
    BackendConfig config{.url = Url::parse(url),
                         .holder = "host:1:test",
                         .lease = std::chrono::seconds(10),
                         .response_timeout = std::chrono::seconds(2),
                         .connect_timeout = std::chrono::seconds(3)};
    return std::make_unique<EtcdBackend>(host, parse_options(config), config.lease, etcd.members());
  }

  // Of a lock; "s" is a semaphore with two permits.
  std::unique_ptr<Attempt> begin(Backend& whose, const std::string& name = "a", bool wait = true) {
    auto attempt = std::make_unique<Attempt>();
    attempt->request = {.name = name,
                        .owner = host.new_owner_id(),
                        .holder = "host:1:test",
                        .lease = std::chrono::seconds(10),
                        .wait = wait,
                        .kind = name == "s" ? LockKind::semaphore : LockKind::lock,
                        .permits = name == "s" ? 2U : 1U};
    attempt->contention = whose.contend(attempt->request, *attempt);
    return attempt;
  }
  std::unique_ptr<Attempt> contend(Backend& whose, const std::string& name = "a", bool wait = true) {
    auto attempt = begin(whose, name, wait);
    engine.run();
    return attempt;
  }
  ReleaseOutcome::Status release(Backend& whose, const Attempt& attempt) {
    std::optional<ReleaseOutcome> outcome;
    whose.release(*attempt.grant, [&](const ReleaseOutcome& said) { outcome = said; });
    for (int i = 0; i < 100 && !outcome; ++i) engine.advance(std::chrono::milliseconds(100));
    return outcome.value().status;
  }
  // Now it stands.
  void begin_session() { (void)release(*backend, *contend(*backend, "first")); }
  void remove_key(const std::string& name = "a") { etcd.remove(etcd.keys_below("dlock/" + name + "/").front()); }

  void TearDown() override { EXPECT_EQ(etcd.values, 0) << "keys are enough"; }

  dlock::test::ManualEngine engine;
  dlock::test::RecordingHost host{engine};
  FakeEtcd etcd{engine};
  std::unique_ptr<EtcdBackend> backend = make();
  std::unique_ptr<EtcdBackend> other = make();
};

}  // namespace dlock::etcd
