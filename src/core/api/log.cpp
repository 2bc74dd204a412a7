#include <dlock/log.hpp>

#include <charconv>
#include <chrono>
#include <ostream>
#include <string>
#include <syncstream>

#include <dlock/error.hpp>
#include <dlock/info.hpp>
#include <dlock/token.hpp>

namespace dlock {

namespace {

// Independent of the program's locale.
std::string seconds(std::chrono::nanoseconds duration) {
  char text[32];  // 10 digits of seconds, and the fraction
  const auto end = std::to_chars(std::begin(text), std::end(text), std::chrono::duration<double>(duration).count(),
                                 std::chars_format::fixed, 6);
  return std::string(std::begin(text), end.ptr) + " s";
}

std::string text_of(const Failure& reason) {
  return printable(Error(reason).what());
}

class Log final : public Observer {
 public:
  explicit Log(std::ostream& stream) : stream_(stream) {}

  void acquired(const AcquiredEvent& e) override {
    write("acquired " + lease(e.name, e.token) + ", after " + seconds(e.wait));
  }
  void released(const ReleasedEvent& e) override {
    write("released " + lease(e.name, e.token) + ", after " + seconds(e.hold) + (e.confirmed ? "" : ", unconfirmed"));
  }
  void renewed(const RenewedEvent& e) override {
    write("renewed " + lease(e.name, e.token) + ", answered after " + seconds(e.latency));
  }
  void lost(const LostEvent& e) override { write("lost " + lease(e.name, e.token) + ": " + text_of(e.reason)); }
  void connection(const ConnectionEvent& e) override {
    write(e.state == ConnectionEvent::State::connected ? "connected" : "reconnecting: " + text_of(e.reason));
  }
  void warning(const WarningEvent& e) override {
    write((e.name.empty() ? "warning: " : "warning about " + quoted(e.name) + ": ") + text_of(e.reason));
  }

 private:
  static std::string quoted(const std::string& name) { return '"' + printable(name) + '"'; }
  static std::string lease(const std::string& name, FencingToken token) {
    return quoted(name) + ", token " + std::to_string(token.value());
  }
  void write(const std::string& event) { std::osyncstream(stream_) << "dlock: " << event << '\n' << std::flush; }

  std::ostream& stream_;
};

}  // namespace

std::shared_ptr<Observer> log_to(std::ostream& stream) {
  return std::make_shared<Log>(stream);
}

}  // namespace dlock
