// Election: one of the candidates for a name leads, and everyone can see which.
//
//   dlock::Election election = client.make_election("scheduler");       // nothing is sent yet
//   dlock::Lease leading = election.campaign({.value = "10.0.0.7:80"});  // waits until this one leads
//   while (leading.held() && schedule(leading.token())) {}
//   leading.release();                                                    // resigns
//
//   leader     | campaign() | leader()  | ended by
//   -----------+------------+-----------+--------------------------------------------------
//   none       | leads      | nullopt   | a campaign
//   another    | waits      | that one  | resignation, loss of the lease, or the leader's end
//
// A leader is the holder of a lease, and nothing more. If a leader was stopped or cut off for longer than its lease,
// another may have replaced it before it knows. Check held() right before each step, and let the resource refuse tokens
// smaller than the greatest it has seen (FencingToken). A campaign is an acquire: what lock.hpp says about threads,
// handlers and moved-from locks, and about the corresponding functions, also applies here.
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

// An aggregate for designated initialisers. Except for the value, as AcquireOptions (options.hpp).
struct CampaignOptions {
  // What others see while this candidate leads, such as its address: at most 1024 bytes of UTF-8 without control
  // characters; else invalid_argument.
  std::string value = {};
  Duration wait = forever;
  std::optional<Duration> lease = std::nullopt;
  bool renew = true;
  std::stop_token cancel = {};
};

// The leader, as the service reports it. Other programs wrote the texts: show them through printable().
struct Leader {
  std::string value = {};
  std::string holder = {};  // "host:pid:label", empty where unknown
  FencingToken token = {};  // of its lease; 0 where unknown

  friend bool operator==(const Leader&, const Leader&) = default;
};

// The registration of an observer of an election. Any thread, except move.
class [[nodiscard]] Observation {
 public:
  Observation() noexcept = default;
  Observation(Observation&&) noexcept = default;
  Observation& operator=(Observation&& other) noexcept;
  // Ends the calls of the handler. Waits for a call in progress, except on the engine thread, where the handler itself
  // may be the caller.
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

  // --- Leading ------------------------------------------------------------------------------------------------------

  // Waits until this candidate leads. Releasing the lease resigns.
  Lease campaign(const CampaignOptions& options = {});
  Lease campaign(const CampaignOptions& options, std::error_code& ec);
  // nullopt: another candidate leads.
  [[nodiscard]] std::optional<Lease> try_campaign(CampaignOptions options = {});
  [[nodiscard]] std::optional<Lease> try_campaign(CampaignOptions options, std::error_code& ec);
  [[nodiscard]] std::optional<Lease> try_campaign_for(Duration wait, CampaignOptions options = {});
  [[nodiscard]] std::optional<Lease> try_campaign_for(Duration wait, CampaignOptions options, std::error_code& ec);
  template <class Handler>
  void async_campaign(const CampaignOptions& options, Handler&& handler) {
    start_campaign(options, detail::completion<Lease>(std::forward<Handler>(handler)));
  }

  // Campaigns, calls f(lease, over) while it leads, resigns when f returns, and starts again, until `stop` is
  // requested. The token `over` fires when the lead is lost or `stop` is requested: f should return soon after, and
  // give the token to whatever it waits for. If f throws, run() resigns and rethrows. run() also throws the Error of a
  // campaign that a retry does not help, such as access_denied. It waits for an unreachable service. It ignores `wait`
  // and `cancel` of the options. Blocks; not on the engine thread.
  //
  //   std::jthread candidate([&](std::stop_token stop) {
  //     election.run(stop, {.value = address}, [&](const dlock::Lease& lease, std::stop_token over) {
  //       while (!over.stop_requested() && lease.held()) schedule(lease.token());
  //     });
  //   });
  using Leading = std::function<void(const Lease& lease, std::stop_token over)>;
  void run(const std::stop_token& stop, CampaignOptions options, const Leading& f);
  void run(const std::stop_token& stop, const Leading& f);

  // --- Observing ----------------------------------------------------------------------------------------------------

  // The leader; nullopt: none. Queries the service; blocks for at most a quarter longer than
  // ClientOptions::response_timeout. Never decide about ownership by it: the answer may be out of date when it arrives.
  [[nodiscard]] std::optional<Leader> leader() const;
  [[nodiscard]] std::optional<Leader> leader(std::error_code& ec) const;

  // Calls handler(leader) with the present leader, and after each change, until the returned object is destroyed;
  // nullopt: there is no leader. It reports the newest leader and may skip changes that follow each other quickly. It
  // queries the service after each change that the service reports, and also about once per second. The handler runs on
  // the engine thread, one call at a time; dlock catches and counts its exceptions. Does not block. Makes no calls
  // after the client is closed.
  Observation observe(std::function<void(const std::optional<Leader>&)> handler) const;

 private:
  friend class Client;
  explicit Election(std::unique_ptr<detail::ElectionImpl> impl) noexcept;
  void start_campaign(const CampaignOptions& options, detail::Completion<Lease> handler);

  std::unique_ptr<detail::ElectionImpl> impl_;
};

}  // namespace dlock
