// Election: of those who campaign for a name one leads, and everybody can see who.
//
//   dlock::Election election = client.election("scheduler");             // nothing is sent yet
//   dlock::Lease leading = election.campaign({.value = "10.0.0.7:80"});  // waits until this one leads
//   while (leading.held() && schedule(leading.token())) {}
//   leading.release();                                                    // resigns
//
//   who leads  | campaign() | leader()  | left by
//   -----------+------------+-----------+--------------------------------------------------
//   nobody     | leads      | nullopt   | a campaign
//   somebody   | waits      | that one  | resignation, loss of the lease, or the leader's end
//
// To lead is to hold the lease, and nothing else: a leader that was stopped, or cut off from the service, for longer
// than its lease has been replaced without knowing it yet. Look at held() right before each step, and have what the
// leader writes to refuse tokens smaller than the greatest it has seen (FencingToken). A campaign is an acquire: what
// DistributedLock (lock.hpp) says of its functions holds for those that correspond to them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

#include <dlock/detail/completion.hpp>
#include <dlock/duration.hpp>
#include <dlock/error.hpp>
#include <dlock/lease.hpp>
#include <dlock/token.hpp>

namespace dlock {

namespace detail {
struct ElectionImpl;
class LeaderObserver;
}  // namespace detail

// An aggregate, made for designated initialisers. Apart from the value as AcquireOptions (options.hpp).
struct CampaignOptions {
  // What others see of this candidate while it leads, such as its address: at most 1024 bytes of UTF-8 without control
  // characters; else invalid_argument.
  std::string value = {};
  Duration wait = forever;
  std::optional<Duration> lease = std::nullopt;
  bool renew = true;
  std::stop_token cancel = {};
};

// Who leads, as the service says. The texts are what others wrote there, byte for byte: show them by printable().
struct Leader {
  std::string value = {};
  std::string holder = {};  // "host:pid:label", empty where unknown
  FencingToken token = {};  // of its lease; 0 where unknown

  friend bool operator==(const Leader&, const Leader&) = default;
};

// Keeps an observer of an election. Any thread, except move.
class [[nodiscard]] Observation {
 public:
  Observation() noexcept = default;
  Observation(Observation&&) noexcept = default;
  Observation& operator=(Observation&& other) noexcept;
  // The handler does not run any more. Waits for a call of it that is under way, unless on the engine thread: there it
  // may be the handler itself that ends it.
  ~Observation();

 private:
  friend class Election;
  explicit Observation(std::shared_ptr<detail::LeaderObserver> observer) noexcept;

  std::shared_ptr<detail::LeaderObserver> observer_;
};

class Election {
 public:
  Election(Election&&) noexcept;
  Election& operator=(Election&&) noexcept;
  ~Election();

  [[nodiscard]] const std::string& name() const noexcept;

  // --- To lead ------------------------------------------------------------------------------------------------------

  // Waits until this candidate leads. Releasing the lease resigns.
  Lease campaign(const CampaignOptions& options = {});
  Lease campaign(const CampaignOptions& options, std::error_code& ec);
  // nullopt: another leads.
  [[nodiscard]] std::optional<Lease> try_campaign(CampaignOptions options = {});
  [[nodiscard]] std::optional<Lease> try_campaign(CampaignOptions options, std::error_code& ec);
  [[nodiscard]] std::optional<Lease> try_campaign_for(Duration wait, CampaignOptions options = {});
  [[nodiscard]] std::optional<Lease> try_campaign_for(Duration wait, CampaignOptions options, std::error_code& ec);
  template <class Handler>
  void async_campaign(const CampaignOptions& options, Handler&& handler) {
    start_campaign(options, detail::completion<Lease>(std::forward<Handler>(handler)));
  }

  // Campaigns, calls f(lease) while it leads, resigns when f has returned, and begins again, until `stop` is requested;
  // f should return soon when lease.lost() fires or stop is requested. What f throws comes out of here after the
  // resignation. So does an Error of a campaign that no further try would help, such as access_denied; an unreachable
  // service is waited for. `wait` and `cancel` of the options are not looked at. Blocks; not on the engine thread.
  //
  //   std::jthread candidate([&](std::stop_token stop) {
  //     election.run(stop, {.value = address}, [&](const dlock::Lease& lease) {
  //       while (lease.held() && !stop.stop_requested()) schedule(lease.token());
  //     });
  //   });
  void run(const std::stop_token& stop, CampaignOptions options, const std::function<void(const Lease&)>& f);
  void run(const std::stop_token& stop, const std::function<void(const Lease&)>& f);

  // --- To look on ---------------------------------------------------------------------------------------------------

  // Who leads; nullopt: nobody. Asks the service, blocks for at most ClientOptions::response_timeout. Never a basis for
  // a decision about ownership: the answer is old by the time it is read.
  [[nodiscard]] std::optional<Leader> leader() const;
  [[nodiscard]] std::optional<Leader> leader(std::error_code& ec) const;

  // Calls handler(leader) with who leads now, and whenever that changes, until the answer is destroyed; nullopt: nobody
  // does. The newest is told: of changes that follow each other quickly, some are left out. The service is asked
  // when it says that something has changed, and about once a second besides. The handler runs on the engine thread,
  // one call at a time; an exception from it is caught and counted. Does not block. Nothing is told once the client is
  // closed.
  Observation observe(std::function<void(const std::optional<Leader>&)> handler) const;

 private:
  friend class Client;
  explicit Election(std::unique_ptr<detail::ElectionImpl> impl) noexcept;
  void start_campaign(const CampaignOptions& options, detail::Completion<Lease> handler);

  std::unique_ptr<detail::ElectionImpl> impl_;
};

}  // namespace dlock
