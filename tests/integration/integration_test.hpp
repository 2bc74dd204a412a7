// What the tests on real services share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <dlock/dlock.hpp>

#include "event_log.hpp"
#include "suite/wait.hpp"
#include "tests/support/refusals.hpp"

namespace dlock::test {

using namespace std::chrono_literals;
using conformance::Event;
using conformance::LossEvent;
using conformance::Outcome;
using conformance::Pending;
using conformance::take;

// What short timeouts bound ends long before this, even on a busy machine.
inline constexpr auto far_too_long = 15s;

// A client whose requests may take long, unless the options say how long: how soon a service answers on a busy machine
// is no question of most tests.
inline Client connect_patiently(const std::string& url, ClientOptions options = {}) {
  constexpr auto patience = 10s;
  const ClientOptions defaults;
  if (options.response_timeout.value() == defaults.response_timeout.value()) options.response_timeout = patience;
  if (options.connect_timeout.value() == defaults.connect_timeout.value()) options.connect_timeout = patience;
  return connect(url, std::move(options));
}

// A client with one of its locks.
struct Contender {
  Contender(Client of, const std::string& name) : client(std::move(of)), lock(client.make_lock(name)) {}

  Client client;
  DistributedLock lock;
};

// The error of a call that must fail.
template <class Call>
Failure failure_of(Call call) {
  Failure failure = thrown_by(call);
  if (!failure.code) ADD_FAILURE() << "it does not fail";
  return failure;
}
template <class Call>
void expect_failure(std::error_code code, const std::string& words, Call call) {
  const Failure failure = failure_of(call);
  EXPECT_EQ(failure.code, code) << failure.detail;
  EXPECT_NE(failure.detail.find(words), std::string::npos) << failure.detail;
}

// Looks again and again, without keeping a processor busy; throws when the guard runs out.
template <class Condition>
void await(const std::string& what, Condition condition) {
  const auto give_up = std::chrono::steady_clock::now() + conformance::guard();
  const Event between_looks;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up) throw conformance::Hang(what);
    (void)between_looks.wait_for(2ms);
  }
}

// Until the lease counts for longer than it does now; throws when it is lost.
inline void await_renewal(const Lease& lease) {
  await("a lease is not renewed", [&lease, before = lease.valid_until()] {
    if (lease.lost().stop_requested()) throw std::runtime_error("a lease is lost, and not renewed");
    return lease.valid_until() > before;
  });
}

// Until so many more renewals were reported; throws when a loss is.
inline void await_renewals(const EventLog& log, std::size_t more) {
  await("leases are not renewed", [&log, enough = log.renewals.count() + more] {
    if (log.losses.happened()) throw std::runtime_error("a lease is lost, and not renewed");
    return log.renewals.count() >= enough;
  });
}

// What an acquire or a release may say that the service did not answer.
inline void expect_unanswered(std::error_code error) {
  EXPECT_TRUE(error == errc::ambiguous || error == errc::unavailable) << error.message();
}

// Whether any finding of that severity, or a worse one, says this.
inline bool mentions(const std::vector<Finding>& findings, Finding::Severity severity, const std::string& text) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& each) {
    return each.severity >= severity && each.message.find(text) != std::string::npos;
  });
}

}  // namespace dlock::test
