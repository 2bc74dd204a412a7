// A client of an etcd in memory and its reports to its user, and a backend over it.
#pragma once

#include "backends/etcd/etcd_backend.hpp"

#include <gtest/gtest.h>

#include "fake_etcd.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::etcd {

class EtcdClientFixture : public testing::Test, public Client::User {
 protected:
  using Fate = FakeEtcd::Fate;

  explicit EtcdClientFixture(const std::string& url = "etcd://a,b,c")
      : options(parse_options({.url = Url::parse(url),
                               .holder = "h",
                               .lease = std::chrono::seconds(10),
                               .response_timeout = std::chrono::seconds(2),
                               .connect_timeout = std::chrono::seconds(3)})),
        client(std::make_unique<Client>(engine, options, etcd.members(), *this)) {}

  // The end of a call: the code of its failure, none once it is answered.
  struct Outcome {
    int told = 0;
    Failure failure;
  };
  std::shared_ptr<Outcome> call() {
    auto outcome = std::make_shared<Outcome>();
    client->call(method_transaction, Transaction().read({.range = {"k"}}).request(), client->answer_by(),
                 [outcome](const Result<std::string>& answer, TimePoint) {
                   ++outcome->told;
                   outcome->failure = answer.ok() ? Failure{} : answer.failure();
                 });
    return outcome;
  }
  Failure result() {
    const auto outcome = call();
    engine.run();
    EXPECT_EQ(outcome->told, 1);
    return outcome->failure;
  }
  void connect() {
    client->want();
    engine.run();
    ASSERT_TRUE(client->ready());
  }

  void client_ready() override {
    ++times_ready;
    if (when_ready) when_ready();
  }
  void client_logged_in() override {
    ++logins_repeated;
    if (when_ready) when_ready();
  }
  void client_down(const Failure& why, bool in_order) override {
    if (!in_order) downs.push_back(why);
    if (when_down) when_down();
  }
  void cluster_changed() override { ++cluster_changes; }

  dlock::test::ManualEngine engine;
  FakeEtcd etcd{engine};
  const Options options;
  int times_ready = 0;
  int logins_repeated = 0;
  int cluster_changes = 0;
  std::vector<Failure> downs;
  std::function<void()> when_ready;
  std::function<void()> when_down;
  std::unique_ptr<Client> client;
};

// A backend, on a clock that the test moves.
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
    const bool is_semaphore = name == "s";
    return dlock::test::begin_attempt(whose, host,
                                      {.name = name,
                                       .wait = wait,
                                       .kind = is_semaphore ? LockKind::semaphore : LockKind::lock,
                                       .permits = is_semaphore ? 2U : 1U});
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
