// A ready-made observer that writes one line for each event.
//
//   auto client = dlock::connect(url, {.observer = dlock::log_to(std::cerr)});
//
//   dlock: acquired "orders/42", token 7, after 0.000412 s
//   dlock: renewed "orders/42", token 7, answered after 0.000387 s
//   dlock: lost "orders/42", token 7: <reason>
//
// For another format, for levels or for fields, derive from Observer: examples/ has observers for spdlog and
// Prometheus.
#pragma once

#include <iosfwd>
#include <memory>

#include <dlock/observer.hpp>

namespace dlock {

// An observer that writes each event as a line to the stream, and flushes it. Names and reasons are written through
// printable(), durations in seconds. The text may change in a later version: programs that read events derive from
// Observer instead.
//
// The stream must outlive the client. Lines are written on the client's engine thread, through std::osyncstream. Any
// number of clients may share an observer or a stream, and so may threads that write through std::osyncstream. A stream
// that blocks, such as a full pipe, delays the renewals of the client. The observer ignores errors of the stream.
[[nodiscard]] std::shared_ptr<Observer> log_to(std::ostream& stream);

}  // namespace dlock
