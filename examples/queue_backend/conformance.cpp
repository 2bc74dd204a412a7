// The conformance suite on the example's backend. Each test has its own server, and a proxy that disturbs clients.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include <dlock/client.hpp>
#include <dlock/conformance/suite.hpp>

#include "queue_backend.hpp"
#include "torture/rig/tcp_proxy.hpp"

namespace {

namespace conformance = dlock::conformance;

// A queue_server.py, which the destructor stops.
class Server {
 public:
  explicit Server(const std::string& port) {
    std::array<int, 2> output;
    if (::pipe2(output.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(output[1], STDOUT_FILENO);
      ::execlp("python3", "python3", DLOCK_QUEUE_SERVER, port.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(output[1]);
    char letter = 0;
    while (pid_ > 0 && ::read(output[0], &letter, 1) == 1 && letter != '\n') url_ += letter;
    ::close(output[0]);
    if (url_.empty()) throw std::runtime_error("queue_server.py did not start");
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] std::string port() const { return url_.substr(url_.rfind(':') + 1); }

  // Its answer, over a connection for this request only.
  [[nodiscard]] std::string ask(const std::string& line) const {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port())));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const std::string request = line + "\n";
    std::array<char, 256> answer;
    ssize_t count = -1;
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        ::send(socket, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
      count = ::recv(socket, answer.data(), answer.size(), 0);
    }
    ::close(socket);
    if (count <= 0) throw std::system_error(errno, std::generic_category(), line);
    return {answer.data(), static_cast<std::size_t>(count - 1)};
  }

 private:
  pid_t pid_ = -1;
  std::string url_;
};

// Disturbed clients reach the server through a proxy.
class QueueFixture final : public conformance::UrlFixture {
 public:
  QueueFixture() : QueueFixture(std::make_unique<Server>("0")) {}

  std::optional<conformance::Missing> missing(conformance::Feature feature) const override {
    using conformance::Feature;
    if (feature == Feature::step_clock) return UrlFixture::missing(feature);
    return std::nullopt;
  }
  dlock::Client make_client(dlock::ClientOptions options, conformance::Link link) override {
    if (link == conformance::Link::steady) return UrlFixture::make_client(std::move(options), link);
    return dlock::connect("queue://127.0.0.1:" + std::to_string(proxy_.port()), std::move(options));
  }
  void stall() override { proxy_.set({.mode = dlock::rig::Traffic::Mode::hold}); }
  void resume() override { proxy_.pass(); }
  void delay_answers(std::chrono::nanoseconds by) override {
    proxy_.set(dlock::rig::Direction::to_client, {.delay = by});
  }
  void cut() override {
    proxy_.refuse(true);
    proxy_.drop();
  }
  void heal() override { proxy_.refuse(false); }
  void lose_next_answer() override { proxy_.lose_reply_to("LOCK\t"); }
  void kill_session(dlock::Client& client) override {
    const dlock::Lease lease = client.make_lock("doomed").acquire();
    (void)server_->ask("EXPEL\tdoomed");
  }
  std::size_t residue(dlock::LockKind /*kind*/, const std::string& name) override {
    const std::string answer = server_->ask("INSPECT\t" + name);
    return answer == "FREE" ? 0 : 1 + std::stoul(answer.substr(answer.rfind('\t') + 1));
  }
  std::uint64_t requests() override { return std::stoull(server_->ask("PING").substr(5)); }
  void restart() override {
    const std::string port = server_->port();
    server_.reset();
    server_ = std::make_unique<Server>(port);
  }

 private:
  explicit QueueFixture(std::unique_ptr<Server> server) : UrlFixture(server->url()), server_(std::move(server)) {}
  std::unique_ptr<Server> server_;
  dlock::rig::TcpProxy proxy_{dlock::rig::Endpoint::loopback(static_cast<std::uint16_t>(std::stoi(server_->port())))};
};

}  // namespace

int main(int argc, char** argv) {
  dlock::register_backend("queue", example::make_queue_backend);
  // The clock of the server cannot be stepped.
  conformance::add_subject(
      {.name = "queue",
       .make = [] { return std::make_unique<QueueFixture>(); },
       .untested = {
           {"Contract.C02_HeldEndsAtValidUntilWithoutBeingTold", "Contract.C03_AKilledHoldIsSignalledWithinItsLease",
            "Contract.C03_TheEndOfALeaseIsSeenAtOnceByWhoeverLooks",
            "Contract.C03_TheEndOfALeaseIsSignalledNoLaterThanValidUntil",
            "Contract.C04_TokensGrowWhenTheWallClockIsSetBack", "Contract.C08_AWaitEndsExactlyAtItsDeadline",
            "Contract.C10_AClockThatJumpsPastTheLeaseEndsIt", "Contract.C10_ALeaseStaysHeldForAsLongAsTheProcessRuns",
            "Contract.C10_ALeaseSurvivesAShortDisturbance", "Contract.C11_AWaiterIsWokenWhileTimeStandsStill"}}});
  return conformance::run(argc, argv);
}
