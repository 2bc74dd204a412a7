// A backend against an etcd in memory, on a clock that the test moves.
#pragma once

#include "backends/etcd/etcd_backend.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fake_etcd.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::etcd {

class EtcdFixture : public testing::Test {
 protected:
  using Attempt = dlock::test::Attempt;
  using Fate = FakeEtcd::Fate;

  std::unique_ptr<EtcdBackend> make(std::string_view parameters = "session_ttl=10s") {
    return make_at("etcd://a,b,c?" + std::string(parameters));
  }
  std::unique_ptr<EtcdBackend> make_at(const std::string& url) {
    BackendConfig config{.url = Url::parse(url),
                         .holder = "host:1:test",
                         .lease = std::chrono::seconds(10),
                         .response_timeout = std::chrono::seconds(2),
                         .connect_timeout = std::chrono::seconds(3)};
    auto made = std::make_unique<EtcdBackend>(host, parse_options(config), config.lease, etcd.members());
    engine.run();
    return made;
  }

  std::unique_ptr<Attempt> begin(Backend& whose, const std::string& name = "a", bool wait = true,
                                 LockKind kind = LockKind::lock, std::uint32_t permits = 1) {
    auto attempt = std::make_unique<Attempt>();
    attempt->request = {.name = name,
                        .owner = host.new_owner_id(),
                        .holder = "host:1:test",
                        .lease = std::chrono::seconds(10),
                        .wait = wait,
                        .kind = kind,
                        .permits = permits};
    attempt->contention = whose.contend(attempt->request, *attempt);
    return attempt;
  }
  std::unique_ptr<Attempt> contend(Backend& whose, const std::string& name = "a", bool wait = true,
                                   LockKind kind = LockKind::lock) {
    auto attempt = begin(whose, name, wait, kind);
    engine.run();
    return attempt;
  }
  // Of a semaphore "s".
  std::unique_ptr<Attempt> begin_for_permit(Backend& whose, bool wait = true, std::uint32_t permits = 2) {
    return begin(whose, "s", wait, LockKind::semaphore, permits);
  }
  std::unique_ptr<Attempt> ask_for_permit(Backend& whose, bool wait = true, std::uint32_t permits = 2) {
    auto attempt = begin_for_permit(whose, wait, permits);
    engine.run();
    return attempt;
  }
  ReleaseOutcome::Status release(Backend& whose, const Attempt& attempt) {
    std::optional<ReleaseOutcome> outcome;
    whose.release(*attempt.grant, [&](const ReleaseOutcome& said) { outcome = said; });
    for (int i = 0; i < 100 && !outcome; ++i) engine.advance(std::chrono::milliseconds(100));
    return outcome.value().status;
  }

  void TearDown() override { EXPECT_EQ(etcd.values, 0) << "keys say enough"; }

  dlock::test::ManualEngine engine;
  dlock::test::RecordingHost host{engine};
  FakeEtcd etcd{engine};
  std::unique_ptr<EtcdBackend> backend = make();
};

}  // namespace dlock::etcd
