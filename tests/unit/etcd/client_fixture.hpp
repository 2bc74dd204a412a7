// A client of an etcd in memory, and its reports to its user.
#pragma once

#include "backends/etcd/connection/client.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "backends/etcd/wire/messages.hpp"
#include "fake_etcd.hpp"
#include "tests/support/manual_engine.hpp"

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

}  // namespace dlock::etcd
