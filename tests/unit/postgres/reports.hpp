// What an acquire reports while it waits.
#pragma once

#include <string>

#include <dlock/spi/backend.hpp>

namespace dlock::postgres {

// What a wait reports when its time is over is what it has heard last.
struct LastReport : GrantSink {
  void granted(Grant) override { note("granted"); }
  void busy() override { note("busy"); }
  void unreachable(Failure) override { note("unreachable"); }
  void failed(Failure) override { note("failed"); }
  virtual void note(const char* what) { word = what; }
  std::string word;
};

// The answer to the first question may come late, and then the wait is over with the first report.
struct FirstReport final : LastReport {
  void note(const char* what) override {
    if (word.empty()) word = what;
  }
};

}  // namespace dlock::postgres
