// The conformance suite needs this from a backend beyond the public API: ways to disturb the service from outside.
//
//   class MyFixture : public dlock::conformance::UrlFixture {
//    public:
//     MyFixture() : UrlFixture("mine://localhost") {}
//     std::optional<Missing> missing(Feature f) const override {
//       return f == Feature::stall ? std::nullopt : UrlFixture::missing(f);
//     }
//     void stall() override { proxy_.hold_traffic(); }
//     void resume() override { proxy_.pass_traffic(); }
//   };
//
// A test makes one fixture and uses it from one thread. A hook whose feature is missing is never called.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <dlock/client.hpp>
#include <dlock/clock.hpp>
#include <dlock/lock_kind.hpp>
#include <dlock/options.hpp>

namespace dlock::conformance {

enum class Feature {
  step_clock,     // clock()
  kill_hold,      // kill_hold()
  kill_session,   // kill_session()
  stall,          // stall(), resume()
  delay_answers,  // delay_answers()
  cut,            // cut(), heal()
  lose_answer,    // lose_next_answer()
  residue,        // residue()
  requests,       // requests()
  restart,        // restart()
  processes,      // url() means the same service in another process
};

// Why a feature is missing.
struct Missing {
  enum class Kind {
    // The backend has nothing of this kind, so there is nothing to test: an embedded one has no connection to cut.
    not_applicable,
    // There is something to test, but this fixture cannot do it. Counts as untested, never as passed.
    untested,
  } kind;
  std::string why;
};

// How a client reaches the service. Faults affect only clients made with Link::disturbed, so that others can inspect
// the lock meanwhile. If only the whole service can be disturbed, the feature is missing.
enum class Link { steady, disturbed };

class Fixture {
 public:
  Fixture() = default;
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;
  virtual ~Fixture() = default;

  // The URL of the same service from a different process, if there is Feature::processes. The suite connects processes
  // that it will kill with a short ClientOptions::lease; if the URL sets a different length of sessions, the suite
  // waits for that.
  [[nodiscard]] virtual std::string url() const = 0;
  // A new client; pass the options on unchanged. All clients of a fixture share one service, which is undisturbed and
  // has none of the suite's locks at first.
  [[nodiscard]] virtual Client make_client(ClientOptions options, Link link) = 0;

  // nullopt: the hooks of the feature work.
  [[nodiscard]] virtual std::optional<Missing> missing(Feature feature) const = 0;

  // A clock for ClientOptions::clock; if all clients of the fixture use it, leases in the service expire by it, too.
  [[nodiscard]] virtual std::shared_ptr<ManualClock> clock() { return nullptr; }

  // Takes the lock away from all holders, in the service and without notifying the client.
  virtual void kill_hold(LockKind /*kind*/, const std::string& /*name*/) {}
  // Ends everything that the service has of a client, as if its machine had died.
  virtual void kill_session(Client& /*client*/) {}

  // Stalled: clients' messages arrive after resume() at the latest, and answers do not arrive before that.
  virtual void stall() {}
  virtual void resume() {}
  // From now on, every answer is delayed by this time.
  virtual void delay_answers(std::chrono::nanoseconds /*by*/) {}
  // How much older than the answered request the one is from which a renewal counts. Zero, unless the service itself
  // may learn of the latest one late.
  [[nodiscard]] virtual std::chrono::nanoseconds age_of_renewals() const { return {}; }
  // Cut: clients' messages fail or are lost until heal().
  virtual void cut() {}
  virtual void heal() {}
  // The service carries out the next acquire request, but the client does not get the answer.
  virtual void lose_next_answer() {}

  // The number of entries (holders, waiters, queue nodes, rows) in the service that could delay others at this name,
  // but not mere records of a token.
  [[nodiscard]] virtual std::size_t residue(LockKind /*kind*/, const std::string& /*name*/) { return 0; }
  // The number of requests that the service has carried out.
  [[nodiscard]] virtual std::uint64_t requests() { return 0; }
  // Stops the service cleanly and starts it again, with the data that it keeps across restarts.
  virtual void restart() {}
};

// A fixture that needs only a URL: it kills holds by Client::break_lock(), runs other processes unless the backend's
// scope is one process, and reports everything else as untested.
class UrlFixture : public Fixture {
 public:
  explicit UrlFixture(std::string url);
  ~UrlFixture() override;

  [[nodiscard]] std::string url() const override { return url_; }
  [[nodiscard]] Client make_client(ClientOptions options, Link link) override;
  [[nodiscard]] std::optional<Missing> missing(Feature feature) const override;
  void kill_hold(LockKind kind, const std::string& name) override;

 protected:
  // The fixture's own client.
  [[nodiscard]] Client& admin() const;

 private:
  std::string url_;
  mutable std::optional<Client> admin_;
};

}  // namespace dlock::conformance
