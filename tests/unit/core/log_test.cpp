#include <dlock/log.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <sstream>
#include <streambuf>
#include <string>
#include <thread>
#include <vector>

#include <dlock/error.hpp>

namespace dlock {
namespace {

using namespace std::chrono_literals;

const Failure silent{errc::unavailable, "h:1: no answer"};

TEST(LogTest, EachEvent_IsALine) {
  std::ostringstream stream;
  const auto log = log_to(stream);
  log->acquired({"job", FencingToken(7), 412us});
  log->renewed({"job", FencingToken(7), 1ms});
  log->released({"job", FencingToken(7), 1h + 1500ms, true});
  log->released({"job", FencingToken(7), 2s, false});
  log->lost({"job", FencingToken(7), {errc::lost, "taken away"}});
  log->connection({ConnectionEvent::State::connected, {}});
  log->connection({ConnectionEvent::State::reconnecting, silent});
  log->warning({"job", silent});
  log->warning({"", {errc::unsupported, {}}});
  EXPECT_EQ(stream.str(),
            "dlock: acquired \"job\", token 7, after 0.000412 s\n"
            "dlock: renewed \"job\", token 7, answered after 0.001000 s\n"
            "dlock: released \"job\", token 7, after 3601.500000 s\n"
            "dlock: released \"job\", token 7, after 2.000000 s, unconfirmed\n"
            "dlock: lost \"job\", token 7: taken away: the lock was lost\n"
            "dlock: connected\n"
            "dlock: reconnecting: h:1: no answer: the lock service is unavailable\n"
            "dlock: warning about \"job\": h:1: no answer: the lock service is unavailable\n"
            "dlock: warning: not supported by this backend\n");
}

TEST(LogTest, NamesAndReasons_CannotForgeLines) {
  std::ostringstream stream;
  const auto log = log_to(stream);
  log->lost({"a\nb", FencingToken(1), {errc::lost, "\033[2Jgone\ndlock: connected"}});
  log->warning({"\u202ejob\u202c", {errc::protocol, "\r"}});
  log->connection({ConnectionEvent::State::reconnecting, {errc::unavailable, "x\ny"}});
  EXPECT_EQ(stream.str(),
            "dlock: lost \"a\\x0ab\", token 1: \\x1b[2Jgone\\x0adlock: connected: the lock was lost\n"
            "dlock: warning about \"\\xe2\\x80\\xaejob\\xe2\\x80\\xac\": \\x0d: unexpected data from the lock service\n"
            "dlock: reconnecting: x\\x0ay: the lock service is unavailable\n");
}

// Counts flushes, and refuses characters when it is told to.
class Sink final : public std::stringbuf {
 public:
  int flushes = 0;
  bool broken = false;

 protected:
  int sync() override {
    ++flushes;
    return broken ? -1 : 0;
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    return broken ? 0 : std::stringbuf::xsputn(text, size);
  }
};

TEST(LogTest, EachLine_IsFlushedAndErrorsAreIgnored) {
  Sink sink;
  std::ostream stream(&sink);
  stream.exceptions(std::ios::badbit | std::ios::failbit);
  const auto log = log_to(stream);
  sink.broken = true;
  EXPECT_NO_THROW(log->connection({ConnectionEvent::State::connected, {}}));
  sink.broken = false;
  sink.flushes = 0;
  for (int i = 0; i < 2; ++i) log->connection({ConnectionEvent::State::connected, {}});
  EXPECT_EQ(sink.str(), "dlock: connected\ndlock: connected\n");
  EXPECT_EQ(sink.flushes, 2);
}

TEST(LogTest, ObserversOfOneStream_WriteWholeLines) {
  std::ostringstream stream;
  {
    std::vector<std::jthread> clients;
    for (char client = 'a'; client < 'e'; ++client) {
      clients.emplace_back([&stream, name = std::string(50, client)] {
        const auto log = log_to(stream);
        for (int i = 0; i < 500; ++i) log->renewed({name, FencingToken(1), 1ms});
      });
    }
  }
  std::map<std::string, int> lines;
  std::istringstream written(stream.str());
  for (std::string line; std::getline(written, line);) ++lines[line];
  ASSERT_EQ(lines.size(), 4U);
  for (const auto& [line, times] : lines) EXPECT_EQ(times, 500) << line;
}

}  // namespace
}  // namespace dlock
