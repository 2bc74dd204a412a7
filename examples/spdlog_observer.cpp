// Events of a client in the log of a program that uses spdlog.
//
//   spdlog_observer [URL]
//
// The logger is asynchronous and drops messages if its queue is full, because an observer must not block: it runs on
// the thread that renews the leases.
#include <spdlog/async.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <iostream>
#include <latch>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include <dlock/dlock.hpp>

using namespace std::chrono_literals;

namespace {

// Names and reasons may contain anything, so they are logged through printable().
class SpdlogObserver final : public dlock::Observer {
 public:
  explicit SpdlogObserver(std::shared_ptr<spdlog::logger> log) : log_(std::move(log)) {}

  void acquired(const dlock::AcquiredEvent& e) override {
    log_->info("acquired \"{}\", token {}, after {:.3f} s", dlock::printable(e.name), e.token.value(), seconds(e.wait));
  }
  void released(const dlock::ReleasedEvent& e) override {
    log_->log(e.confirmed ? spdlog::level::info : spdlog::level::warn, "released \"{}\", token {}, after {:.3f} s{}",
              dlock::printable(e.name), e.token.value(), seconds(e.hold), e.confirmed ? "" : ", unconfirmed");
  }
  void renewed(const dlock::RenewedEvent& e) override {
    log_->debug("renewed \"{}\", token {}, answered after {:.3f} s", dlock::printable(e.name), e.token.value(),
                seconds(e.latency));
  }
  void lost(const dlock::LostEvent& e) override {
    log_->error("lost \"{}\", token {}: {}", dlock::printable(e.name), e.token.value(), text(e.reason));
  }
  void connection(const dlock::ConnectionEvent& e) override {
    if (e.state == dlock::ConnectionEvent::State::connected) {
      log_->info("connected");
    } else {
      log_->warn("reconnecting: {}", text(e.reason));
    }
  }
  void warning(const dlock::WarningEvent& e) override {
    log_->warn("\"{}\": {}", dlock::printable(e.name), text(e.reason));
  }

 private:
  static double seconds(std::chrono::nanoseconds duration) { return std::chrono::duration<double>(duration).count(); }
  static std::string text(const dlock::Failure& reason) { return dlock::printable(dlock::Error(reason).what()); }

  std::shared_ptr<spdlog::logger> log_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "memory://";
  const auto log = spdlog::create_async_nb<spdlog::sinks::stdout_sink_mt>("dlock");
  log->set_pattern("%n %l: %v");
  try {
    const dlock::Client client = dlock::connect(url, {.observer = std::make_shared<SpdlogObserver>(log)});
    (void)client.make_lock("orders/42").acquire().release();
    if (client.capabilities().can_break) {
      const dlock::Lease lease = client.make_lock("orders/43").acquire({.lease = 300ms});
      (void)client.break_lock("orders/43");  // the holder notices at its next renewal
      std::latch lost(1);
      const std::stop_callback on_loss(lease.lost(), [&lost] { lost.count_down(); });
      lost.wait();
    }
  } catch (const dlock::Error& e) {
    std::cerr << "spdlog_observer: " << e.what() << '\n';
    return 1;
  }
  spdlog::shutdown();  // after the last client: writes the messages that wait
}
