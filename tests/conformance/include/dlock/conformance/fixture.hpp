// What the conformance suite asks of a backend beyond the public API: ways to disturb the service from outside.
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

// Why a feature is not there.
struct Missing {
  enum class Kind {
    // The backend has nothing of the kind, so there is nothing to test: an embedded one has no connection to cut.
    not_applicable,
    // There is something to test, but this fixture has no means to. Counts as untested, never as passed.
    untested,
  } kind;
  std::string why;
};

// How a client reaches the service. Faults act on the clients that were made with Link::disturbed, so that others can
// look at what became of the lock meanwhile. Where only the whole service can be disturbed, the feature is missing.
enum class Link { steady, disturbed };

class Fixture {
 public:
  Fixture() = default;
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;
  virtual ~Fixture() = default;

  // Reaches the same service from another process, where Feature::processes is there. The suite connects those that it
  // is going to kill with a short ClientOptions::lease; if the URL sets another length of sessions, the suite waits for
  // that.
  [[nodiscard]] virtual std::string url() const = 0;
  // A new client; the options are to be passed on as they are. All clients of a fixture share one service, which is
  // undisturbed and holds none of the suite's locks at first.
  [[nodiscard]] virtual Client make_client(ClientOptions options, Link link) = 0;

  // nullopt: the hooks of the feature work.
  [[nodiscard]] virtual std::optional<Missing> missing(Feature feature) const = 0;

  // A clock for ClientOptions::clock; when all clients of the fixture use it, leases in the service run out by it too.
  [[nodiscard]] virtual std::shared_ptr<ManualClock> clock() { return nullptr; }

  // Takes the lock away from all who hold it, in the service and without telling the client.
  virtual void kill_hold(LockKind /*kind*/, const std::string& /*name*/) {}
  // Ends everything that the service knows of a client, as if its machine had died.
  virtual void kill_session(Client& /*client*/) {}

  // Stalled: what clients send arrives at the latest after resume(), and answers do not come before that.
  virtual void stall() {}
  virtual void resume() {}
  // From here on, every answer comes so much later than it would.
  virtual void delay_answers(std::chrono::nanoseconds /*by*/) {}
  // How much older than the request that was answered is the one from which a renewal counts. Zero, unless the service
  // may have heard late itself of the latest.
  [[nodiscard]] virtual std::chrono::nanoseconds age_of_renewals() const { return {}; }
  // Cut: what clients send fails or gets lost until heal().
  virtual void cut() {}
  virtual void heal() {}
  // The service carries out the next acquire request, but the client does not get to see the answer.
  virtual void lose_next_answer() {}

  // How many entries (holders, waiters, queue nodes, rows) the service keeps that could delay others at this name.
  // What only remembers a token does not count.
  [[nodiscard]] virtual std::size_t residue(LockKind /*kind*/, const std::string& /*name*/) { return 0; }
  // How many requests the service has carried out so far.
  [[nodiscard]] virtual std::uint64_t requests() { return 0; }
  // Stops the service cleanly and starts it again, with the data that it keeps across restarts.
  virtual void restart() {}
};

// A fixture that needs nothing but a URL: it kills holds by Client::break_lock(), runs other processes unless the
// backend's scope is one process, and says of everything else that it cannot be tested.
class UrlFixture : public Fixture {
 public:
  explicit UrlFixture(std::string url);
  ~UrlFixture() override;

  [[nodiscard]] std::string url() const override { return url_; }
  [[nodiscard]] Client make_client(ClientOptions options, Link link) override;
  [[nodiscard]] std::optional<Missing> missing(Feature feature) const override;
  void kill_hold(LockKind kind, const std::string& name) override;

 protected:
  // A client of the fixture itself.
  [[nodiscard]] Client& admin() const;

 private:
  std::string url_;
  mutable std::optional<Client> admin_;
};

}  // namespace dlock::conformance
