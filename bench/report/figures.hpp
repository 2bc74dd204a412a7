// The names of scenarios, parameters and figures, for scenarios and reports.
#pragma once

namespace dlock::bench {

// With each: the parameters of its measurements, then their figures, as far as the service gives them. Measured by
// hand, too: latency, and throughput with `callers` only.
namespace scenario {
// One caller acquires and releases a free lock. {}; {rate}: an open loop; {round_trip_ms}: over a simulated network.
// p50 p90 p99 p99.9 max samples; context switches without a rate; the distribution.
inline constexpr const char* latency = "latency";
// Many callers, each with its own name. {callers}: throughput p50 p99 client_cpu context_switches; dlock only:
// operations.
// {outstanding}, asynchronous calls instead of threads: the same.
// {callers, reads}, one read-write lock, and {callers, permits}, one semaphore: throughput.
// {held}, names held by one otherwise idle client: client_cpu operations memory lease.
inline constexpr const char* throughput = "throughput";
// Many waiters, one name, held for a millisecond each time. {waiters}; {waiters, round_trip_ms}: hand_offs p50 p90 p99
// max fairness longest_wait operations wake_ups; the distribution.
// {callers, names}, names by a Zipf distribution: throughput p50 p99 max fairness of the waits; their distribution.
// {readers}, which acquire and release a read-write lock without a pause: p50 p99 of the wait of one writer.
inline constexpr const char* contention = "contention";
// The holder is killed; the time until the waiter gets the lock. {}: p50 (a repeat is one kill) max lease; the
// distribution.
inline constexpr const char* recovery = "recovery";
}  // namespace scenario

namespace parameter {
inline constexpr const char* callers = "callers";              // threads that call concurrently
inline constexpr const char* outstanding = "outstanding";      // concurrent asynchronous acquires
inline constexpr const char* waiters = "waiters";              // for one name
inline constexpr const char* held = "held";                    // names, concurrently, by one client
inline constexpr const char* round_trip_ms = "round_trip_ms";  // simulated
inline constexpr const char* names = "names";
inline constexpr const char* reads = "reads";      // percent of all calls
inline constexpr const char* readers = "readers";  // that one writer waits for
inline constexpr const char* permits = "permits";  // of a semaphore
inline constexpr const char* rate = "rate";        // arrivals a second, of an open loop
}  // namespace parameter

namespace figure {
inline constexpr const char* p50 = "p50";  // us, as all percentiles
inline constexpr const char* p90 = "p90";
inline constexpr const char* p99 = "p99";
inline constexpr const char* p999 = "p99.9";
inline constexpr const char* longest = "max";  // us
inline constexpr const char* samples = "samples";
inline constexpr const char* throughput = "throughput";  // acquire and release, 1/s
inline constexpr const char* hand_offs = "hand-offs";    // 1/s
// Jain's index of each contender's turns, as a share of its value for the most even division of so many turns: ten
// turns cannot be fair to a hundred contenders.
inline constexpr const char* fairness = "fairness";
inline constexpr const char* longest_wait = "longest wait";  // us; includes waits that have not ended
inline constexpr const char* operations = "operations";  // of the server, for each hand-off (contention), acquire and
                                                         // release (throughput), or lease and second (holding)
inline constexpr const char* wake_ups = "wake-ups";      // messages from the server to waiters for each hand-off
inline constexpr const char* client_cpu = "client processor time";   // us, for each pair; percent of a core (holding)
inline constexpr const char* context_switches = "context switches";  // of the client, of both kinds, for each pair
inline constexpr const char* memory = "memory";                      // B for each lease
// us, granted, which may be more than requested. 0: the lock lasts as long as its holder's process.
inline constexpr const char* lease = "lease";
}  // namespace figure

}  // namespace dlock::bench
