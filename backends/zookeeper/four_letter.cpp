#include "backends/zookeeper/four_letter.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>

namespace dlock::zookeeper {

namespace {

constexpr std::size_t longest_answer = std::size_t{4} << 20U;  // cons tells some 100 bytes of each client

std::string describe(int error) {
  return std::system_category().message(error);
}

// Cuts the first line off.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

}  // namespace

// --- A question ------------------------------------------------------------------------------------------------------

FourLetterQuestion::FourLetterQuestion(Executor& executor, Host host, std::string_view word, TimePoint deadline,
                                       Handler done)
    : executor_(executor),
      host_(std::move(host)),
      word_(word),
      deadline_(deadline),
      done_(std::move(done)),
      timer_(executor) {
  timer_.arm(deadline_, [this] { finish(broken("no address, because the name service does not answer")); });
  resolution_.emplace(executor_, host_.name, host_.port,
                      [this](Result<std::vector<util::Address>> answer) { resolved(std::move(answer)); });
}

FourLetterQuestion::~FourLetterQuestion() = default;

void FourLetterQuestion::resolved(Result<std::vector<util::Address>> answer) {
  if (!answer.ok()) return finish(answer.failure());
  addresses_ = std::move(answer.value());
  try_next_address();
}

void FourLetterQuestion::try_next_address() {
  const std::size_t left = addresses_.size() - next_address_;  // this one included
  const util::Address& address = addresses_[next_address_++];
  if (auto problem = start_connecting(address)) return address_failed(*std::move(problem));
  // A black hole must not take the time of those that come after it.
  const TimePoint now = executor_.now();
  const auto share = (deadline_ - now) / static_cast<std::int64_t>(left);
  timer_.arm(saturating_add(now, share), [this] { address_failed(broken("no answer in time")); });
}

std::optional<Failure> FourLetterQuestion::start_connecting(const util::Address& address) {
  socket_ = util::UniqueFd(::socket(address.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!socket_) return broken("no socket: " + describe(errno));
  const int result = ::connect(socket_.get(), address.get(), address.length);
  if (result != 0 && errno != EINPROGRESS) return broken(describe(errno));
  try {
    descriptor_ = executor_.watch(socket_.get());
  } catch (const Error& e) {
    return Failure{e.code(), e.detail()};
  }
  descriptor_->async_wait(Descriptor::Interest::writable, [this](std::error_code) { connected(); });
  return std::nullopt;
}

void FourLetterQuestion::connected() {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return address_failed(broken(describe(error)));
  // Four bytes always fit into the buffer of a new connection.
  const ssize_t sent = ::send(socket_.get(), word_.data(), word_.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(word_.size())) return address_failed(broken(describe(errno)));
  next_address_ = addresses_.size();  // whatever comes now, it is the answer
  timer_.arm(deadline_, [this] { finish(broken("no answer to " + word_ + " in time")); });
  wait_readable();
}

void FourLetterQuestion::address_failed(Failure why) {
  timer_.disarm();
  descriptor_.reset();
  socket_.reset();
  if (next_address_ < addresses_.size()) return try_next_address();
  finish(std::move(why));
}

void FourLetterQuestion::wait_readable() {
  descriptor_->async_wait(Descriptor::Interest::readable, [this](std::error_code) { receive(); });
}

// The server closes the connection behind its answer.
void FourLetterQuestion::receive() {
  std::array<char, 16384> buffer;
  const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (count < 0) {
    if (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK) return wait_readable();
    return finish(broken(describe(errno)));
  }
  if (count == 0) {
    if (text_.empty()) return finish(broken("closed the connection instead of answering " + word_));
    return finish(Answer{std::move(text_), our_address()});
  }
  text_.append(buffer.data(), static_cast<std::size_t>(count));
  if (text_.size() > longest_answer) return finish(broken("the answer to " + word_ + " has no end"));
  wait_readable();
}

std::string FourLetterQuestion::our_address() const {
  util::Address address;
  address.length = sizeof address.storage;
  if (getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) return {};
  return address.to_string();
}

Failure FourLetterQuestion::broken(const std::string& why) const {
  return {errc::unavailable, host_.to_string() + ": " + why};
}

void FourLetterQuestion::finish(Result<Answer> answer) {
  timer_.disarm();
  resolution_.reset();
  descriptor_.reset();
  socket_.reset();
  if (const auto done = std::exchange(done_, nullptr)) done(std::move(answer));  // may destroy us
}

// --- What the answers say --------------------------------------------------------------------------------------------

std::optional<ServerStatus> read_srvr(std::string_view text) {
  ServerStatus status;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, colon);
    const std::string_view value = line.substr(colon + 2);
    if (key == "Zookeeper version" || key == "ZooKeeper version") {
      status.version = value.substr(0, value.find_first_of("-, "));
    } else if (key == "Mode") {
      status.mode = value;
    } else if (key == "Connections") {
      status.connections = number_in(value);
    }
  }
  if (status.version.empty() || status.mode.empty()) return std::nullopt;
  return status;
}

bool is_refusal(std::string_view text) noexcept {
  return text.find("is not executed because it is not in the whitelist") != std::string_view::npos;
}

std::optional<std::uint64_t> read_number(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (!line.starts_with(key) || line.size() == key.size()) continue;
    const char delimiter = line[key.size()];
    if (delimiter == '\t' || delimiter == '=') return number_in(line.substr(key.size() + 1));
  }
  return std::nullopt;
}

// " /127.0.0.1:45678[1](queued=0,recved=3,sent=3,...)"; an IPv6 address is written out, in brackets or not.
std::size_t count_connections(std::string_view text, std::string_view address) {
  std::size_t count = 0;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    const std::size_t slash = line.find('/');
    if (slash == std::string_view::npos) continue;
    line = line.substr(slash + 1);
    const std::size_t port = line.rfind(':', line.find('('));
    if (port == std::string_view::npos) continue;
    std::string_view from = line.substr(0, port);
    if (from.starts_with('[') && from.ends_with(']')) from = from.substr(1, from.size() - 2);
    if (from == address) ++count;
  }
  return count;
}

}  // namespace dlock::zookeeper
