#include "backends/zookeeper/connection/connector.hpp"

#include <algorithm>
#include <utility>

#include "util/duration_text.hpp"

namespace dlock::zookeeper {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

// While so many handles are closing, with two threads each, no new one is opened. Closing one takes seconds if the
// network drops all packets.
constexpr std::size_t most_closing = 4;
// An unresponsive host is checked so often in its time.
constexpr int checks = 4;
constexpr nanoseconds shortest_patience = milliseconds(1);
// However short a session is requested: servers grant more (minSessionTimeout), and some networks need it to connect.
constexpr nanoseconds longest_patience_at_least = milliseconds(1000);

}  // namespace

Connector::Connector(Executor& executor, const Options& options, HandleFactory handles, Handle::Listener& listener,
                     Unresponsive unresponsive)
    : executor_(executor),
      options_(options),
      handles_(std::move(handles)),
      listener_(listener),
      unresponsive_(std::move(unresponsive)),
      timer_(executor) {}

void Connector::next_host() {
  requested_again_ = false;
  std::vector<Host>& hosts = dialled_.hosts;
  if (!hosts.empty()) {
    std::rotate(hosts.begin(), hosts.begin() + 1, hosts.end());
    return;
  }
  dialled_ = options_;
  for (std::size_t left = hosts.size(); left > 1; --left) std::swap(hosts[left - 1], hosts[executor_.random() % left]);
}

bool Connector::open() {
  if (closing_.size() >= most_closing) return false;
  opened_at_ = unresponsive_since_ = executor_.now();
  check_later();
  handle_ = handles_(executor_, dialled_, listener_);
  return true;
}

bool Connector::accept(milliseconds granted) {
  if (!requested_again_ && executor_.now() >= saturating_add(opened_at_, granted / 2)) {
    requested_again_ = true;
    close_handle();
    return false;
  }
  timer_.disarm();
  unresponsive_hosts_ = 0;
  return true;
}

// All hosts get their turn within the connect timeout. If none answers, each gets twice the time in the next round,
// because they may just be slow. A session granted after half of its timeout would not be accepted.
nanoseconds Connector::patience() const {
  const nanoseconds longest = std::max<nanoseconds>(options_.session_timeout / 2, longest_patience_at_least);
  const std::size_t hosts = std::max<std::size_t>(1, dialled_.hosts.size());
  nanoseconds patience = std::max(options_.connect_timeout / static_cast<int>(hosts), shortest_patience);
  for (std::size_t round = unresponsive_hosts_ / hosts; round > 0 && patience < longest; --round) patience *= 2;
  return std::min(patience, longest);
}

void Connector::check_later() {
  timer_.arm(saturating_add(executor_.now(), std::max(patience() / checks, shortest_patience)), [this] { check(); });
}

void Connector::check() {
  const TimePoint now = executor_.now();
  if (!handle_->waits_for_server()) unresponsive_since_ = now;
  if (now < saturating_add(unresponsive_since_, patience())) return check_later();
  const Failure why{errc::unavailable, options_.endpoint() + ": a server did not answer within " +
                                           util::to_text(std::chrono::duration_cast<milliseconds>(patience()))};
  const bool last = ++unresponsive_hosts_ % std::max<std::size_t>(1, dialled_.hosts.size()) == 0;
  close_handle();
  unresponsive_(why, last);
}

void Connector::close_handle() {
  timer_.disarm();
  if (!handle_) return;
  // Kept until it is closed: close() waits for it.
  Handle* const handle = closing_.emplace_back(std::move(handle_)).get();
  handle->close([this, handle] {
    // The handle calls this, so destroy it later.
    executor_.post(lifetime_.guard([this, handle] {
      std::erase_if(closing_, [&](const auto& closing) { return closing.get() == handle; });
      finish_closing();
    }));
  });
}

void Connector::close(std::function<void()> done) {
  closed_ = std::move(done);
  close_handle();
  executor_.post(lifetime_.guard([this] { finish_closing(); }));
}

void Connector::finish_closing() {
  if (!closing_.empty()) return;
  if (const auto closed = std::exchange(closed_, nullptr)) closed();
}

}  // namespace dlock::zookeeper
