#include "torture/rig/tcp_proxy.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <iterator>
#include <utility>

#include "torture/rig/hang_guard.hpp"

namespace dlock::rig {

namespace {

// The time that a processor takes to wake this thread.
constexpr std::chrono::microseconds wake_up{50};

// The longest text that is found across two packets.
constexpr std::size_t longest_text = 256;

ssize_t send_some(int fd, std::string_view bytes) {
  ssize_t n = 0;
  do {
    n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  return n;
}

// Reads and discards available data; false at its end.
bool drain(int fd) {
  std::array<char, 4096> bytes;
  for (;;) {
    const ssize_t n = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
}

void end_at_server(const UniqueFd& server) {
  (void)::shutdown(server.get(), SHUT_WR);  // fails if the server has closed already
}

}  // namespace

class TcpProxy::PollSet {
 public:
  // Returns the index of its events.
  std::optional<std::size_t> add(int fd, short events) {
    // Without events, a broken connection would still wake this thread, again and again.
    if (fd < 0 || events == 0) return std::nullopt;
    sources_.push_back({.fd = fd, .events = events, .revents = 0});
    return sources_.size() - 1;
  }
  void add_deadline(std::optional<Clock::time_point> due) {
    if (due) due_ = std::min(due_, *due);
  }
  // With many connections, checking each for data would take longer than moving the data.
  [[nodiscard]] bool has_input(std::optional<std::size_t> place) const {
    return place && (sources_[*place].revents & ~POLLOUT) != 0;
  }
  // Writable sockets and the reason of the wake-up do not matter: after it, all data that can be moved is moved.
  void wait() {
    if (due_ == Clock::time_point::max()) {
      (void)::ppoll(sources_.data(), sources_.size(), nullptr, nullptr);
      return;
    }
    // Not by poll(), whose milliseconds are long compared with a delay of half of one. It busy-waits shortly before the
    // time, because waking up takes as long.
    const auto left = std::max<std::chrono::nanoseconds>(due_ - Clock::now() - wake_up, std::chrono::nanoseconds(0));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec timeout{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
    (void)::ppoll(sources_.data(), sources_.size(), &timeout, nullptr);
  }

 private:
  std::vector<pollfd> sources_;
  Clock::time_point due_ = Clock::time_point::max();
};

TcpProxy::TcpProxy(Endpoint target, Endpoint at)
    : target_(std::move(target)),
      listener_(std::move(at)),
      port_(listener_.port()),
      wake_(require(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
      thread_([this] { run(); }) {}

TcpProxy::~TcpProxy() {
  on_loop([this] { stopping_ = true; });
  thread_.join();
  for (auto& [number, connection] : connections_) end(connection, Ending::reset);
}

void TcpProxy::set(Direction direction, const Traffic& traffic) {
  on_loop([&] {
    traffic_.at(static_cast<std::size_t>(direction)) = traffic;
    for (auto& [number, connection] : connections_) {
      (direction == Direction::to_server ? connection.to_server : connection.to_client).set(traffic);
    }
  });
}

void TcpProxy::set(std::size_t connection, Direction direction, const Traffic& traffic) {
  on_loop([&] {
    const auto found = connections_.find(connection);
    if (found == connections_.end()) return;
    (direction == Direction::to_server ? found->second.to_server : found->second.to_client).set(traffic);
  });
}

void TcpProxy::pass() {
  set(Traffic{});
  on_loop([&] {
    cut_.reset();
    request_rules_.clear();
    for (auto& [number, connection] : connections_) connection.lost_reply.reset();
  });
}

void TcpProxy::cut_after(Direction direction, std::uint64_t count, Ending ending) {
  on_loop([&] { cut_ = Cut{.direction = direction, .count = count, .ending = ending}; });
}

void TcpProxy::lose_reply_to(std::string text, Ending ending) {
  on_loop([&] {
    request_rules_.push_back({std::move(text), [ending](Connection& connection) { connection.lost_reply = ending; }});
  });
}

void TcpProxy::before_request(std::string text, std::function<void()> action) {
  on_loop([&] {
    request_rules_.push_back({std::move(text), [act = std::move(action)](Connection& /*connection*/) { act(); }});
  });
}

void TcpProxy::retarget(Endpoint target) {
  on_loop([&] { target_ = std::move(target); });
}

void TcpProxy::drop(Ending ending) {
  on_loop([&] {
    accept_connections();  // connections that the clients consider established
    for (auto& [number, connection] : connections_) end(connection, ending);
  });
}

void TcpProxy::sever() {
  on_loop([&] {
    accept_connections();
    for (auto& [number, connection] : connections_) {
      if (connection.over) continue;
      end_at_client(connection, Ending::reset);
      if (connection.server) severed_.push_back(std::move(connection.server));
    }
  });
}

void TcpProxy::end_severed() {
  on_loop([&] {
    for (UniqueFd& server : severed_) end_at_server(server);
    std::ranges::move(severed_, std::back_inserter(draining_));
    severed_.clear();
  });
}

void TcpProxy::refuse(bool refused) {
  on_loop([&] { refused ? listener_.close() : listener_.open(); });
}

TcpProxy::Counters TcpProxy::counters() const {
  Counters result;
  on_loop([&] { result = current_; });
  return result;
}

bool TcpProxy::wait_until(const std::function<bool(const Counters&)>& condition) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, hang_guard, [&] { return condition(counters_); });
}

void TcpProxy::on_loop(const std::function<void()>& change) const {
  if (std::this_thread::get_id() == thread_.get_id()) return change();
  std::unique_lock lock(mutex_);
  bool done = false;
  changes_.push_back([&] {
    change();
    const std::scoped_lock inner(mutex_);
    done = true;
  });
  const std::uint64_t one = 1;
  require(::write(wake_.get(), &one, sizeof(one)), "eventfd");
  changed_.wait(lock, [&] { return done; });
}

void TcpProxy::run_changes() {
  std::uint64_t ignored = 0;
  (void)!::read(wake_.get(), &ignored, sizeof(ignored));  // nothing to read: it was a different event
  std::vector<std::function<void()>> changes;
  {
    const std::scoped_lock lock(mutex_);
    changes.swap(changes_);
  }
  for (const auto& change : changes) change();
}

void TcpProxy::run() {
  (void)::prctl(PR_SET_TIMERSLACK, 1UL);  // otherwise every delay takes 50 us longer
  while (!stopping_) {
    PollSet set = poll_set(Clock::now());
    set.wait();
    run_changes();
    accept_connections();
    const auto now = Clock::now();
    for (auto& [number, connection] : connections_) {
      if (!connection.over) move_bytes(connection, set, now);
    }
    std::erase_if(connections_, [](const auto& each) { return each.second.over; });
    current_.open = connections_.size();
    drain_servers();
    publish_counters();
  }
}

TcpProxy::PollSet TcpProxy::poll_set(Clock::time_point now) {
  PollSet set;
  (void)set.add(wake_.get(), POLLIN);
  (void)set.add(listener_.fd(), POLLIN);
  const auto events = [&](const ProxyStream& in, const ProxyStream& out) {
    return static_cast<short>((in.wants_input() ? POLLIN : 0) | (out.ready(now).empty() ? 0 : POLLOUT));
  };
  for (auto& [number, connection] : connections_) {
    connection.client_place = set.add(connection.client.get(), events(connection.to_server, connection.to_client));
    connection.server_place = set.add(connection.server.get(), events(connection.to_client, connection.to_server));
    set.add_deadline(connection.to_server.next_due(now));
    set.add_deadline(connection.to_client.next_due(now));
  }
  for (const UniqueFd& server : draining_) (void)set.add(server.get(), POLLIN);
  for (const UniqueFd& server : severed_) (void)set.add(server.get(), POLLIN);
  return set;
}

void TcpProxy::accept_connections() {
  while (UniqueFd client = listener_.accept()) {
    Connection connection{.client = std::move(client), .server = start_connect(target_)};
    connection.to_server.set(traffic_[0]);
    connection.to_client.set(traffic_[1]);
    if (!connection.server) end(connection, Ending::reset);
    connections_.emplace(current_.accepted++, std::move(connection));
  }
}

void TcpProxy::move_bytes(Connection& connection, const PollSet& set, Clock::time_point now) {
  if (set.has_input(connection.client_place)) {
    current_.to_server.taken += connection.to_server.take(connection.client.get(), now);
  }
  if (set.has_input(connection.server_place)) {
    current_.to_client.taken += connection.to_client.take(connection.server.get(), now);
  }
  pass_on(connection, Direction::to_server, now);
  if (!connection.over) pass_on(connection, Direction::to_client, now);
  if (connection.to_server.finished() && connection.to_client.finished()) connection.over = true;
}

void TcpProxy::pass_on(Connection& connection, Direction direction, Clock::time_point now) {
  const bool to_server = direction == Direction::to_server;
  ProxyStream& stream = to_server ? connection.to_server : connection.to_client;
  const int sink = (to_server ? connection.server : connection.client).get();
  TcpProxy::Bytes& count = to_server ? current_.to_server : current_.to_client;
  for (std::string_view bytes = stream.ready(now); !bytes.empty(); bytes = stream.ready(now)) {
    if (to_server) apply_request_rules(connection, bytes);
    if (connection.over || cut_instead(connection, direction)) return;
    Cut* const cut = cut_ && cut_->direction == direction ? &*cut_ : nullptr;
    if (cut != nullptr) bytes = bytes.substr(0, cut->count);
    const ssize_t n = send_some(sink, bytes);
    if (n < 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK) stream.finish();
      return;
    }
    const auto sent = static_cast<std::size_t>(n);
    if (to_server) connection.recent_request.append(bytes.substr(0, sent));
    stream.passed(sent, now);
    count.passed += sent;
    if (cut != nullptr && (cut->count -= sent) == 0) {
      (void)cut_instead(connection, direction);
      return;
    }
  }
  if (stream.end_is_due()) {
    stream.finish();
    (void)::shutdown(sink, SHUT_WR);  // fails if that side has closed already
  }
}

// Ends the connection if a rule forbids the next byte of this direction.
bool TcpProxy::cut_instead(Connection& connection, Direction direction) {
  std::optional<Ending> ending;
  if (direction == Direction::to_client) ending = connection.lost_reply;
  if (!ending && cut_ && cut_->direction == direction && cut_->count == 0) {
    ending = cut_->ending;
    cut_.reset();
  }
  if (!ending) return false;
  ++current_.cuts;
  end(connection, *ending);
  return true;
}

void TcpProxy::apply_request_rules(Connection& connection, std::string_view bytes) {
  std::string& recent = connection.recent_request;
  if (recent.size() > longest_text) recent.erase(0, recent.size() - longest_text);
  if (request_rules_.empty()) return;
  const std::string seen = recent + std::string(bytes);
  // Rules added by an action apply to later requests.
  for (std::size_t i = 0, left = request_rules_.size(); left > 0 && i < request_rules_.size(); --left) {
    const std::string& text = request_rules_[i].text;
    // A text that was already forwarded completely belongs to an earlier request.
    const std::size_t from = recent.size() < text.size() ? 0 : recent.size() - text.size() + 1;
    if (seen.find(text, from) == std::string::npos) {
      ++i;
      continue;
    }
    const RequestRule rule = std::move(request_rules_[i]);
    request_rules_.erase(request_rules_.begin() + static_cast<std::ptrdiff_t>(i));
    rule.action(connection);
  }
}

void TcpProxy::end_at_client(Connection& connection, Ending ending) {
  connection.over = true;
  if (ending == Ending::reset) {
    reset_on_close(connection.client.get());
  } else {
    (void)::shutdown(connection.client.get(), SHUT_WR);
    (void)drain(connection.client.get());  // unread bytes would turn the close into a reset
  }
  connection.client.reset();
}

void TcpProxy::end(Connection& connection, Ending ending) {
  if (connection.over) return;
  end_at_client(connection, ending);
  if (!connection.server) return;
  end_at_server(connection.server);
  draining_.push_back(std::move(connection.server));
}

void TcpProxy::drain_servers() {
  const auto has_closed = [](const UniqueFd& server) { return !drain(server.get()); };
  std::erase_if(draining_, has_closed);
  std::erase_if(severed_, has_closed);
}

void TcpProxy::publish_counters() {
  const std::scoped_lock lock(mutex_);
  counters_ = current_;
  changed_.notify_all();
}

}  // namespace dlock::rig
