// The names of scenarios, parameters and figures: scenarios write them, reports look for them.
#pragma once

namespace dlock::bench {

namespace scenario {
// One caller, a free lock: acquire and release. Parameter round_trip_ms where the network is simulated.
inline constexpr const char* latency = "latency";
// Many callers, each with a name of its own.
inline constexpr const char* throughput = "throughput";
// Many waiters, one name.
inline constexpr const char* contention = "contention";
// The holder is killed.
inline constexpr const char* recovery = "recovery";
// Many leases are held, nothing else happens.
inline constexpr const char* holding = "holding";
// latency, contention over a simulated network.
inline constexpr const char* distance = "distance";
// Many callers, names by a Zipf distribution, the lock held for a while.
inline constexpr const char* mix = "mix";
}  // namespace scenario

namespace parameter {
inline constexpr const char* callers = "callers";              // threads that call at the same time
inline constexpr const char* outstanding = "outstanding";      // asynchronous acquires under way at the same time
inline constexpr const char* waiters = "waiters";              // for one name
inline constexpr const char* leases = "leases";                // held at the same time
inline constexpr const char* round_trip_ms = "round_trip_ms";  // simulated
inline constexpr const char* names = "names";
inline constexpr const char* hold_us = "hold_us";  // how long each holds the lock, on average
inline constexpr const char* rate = "rate";        // arrivals a second, of an open loop
inline constexpr const char* lease_ms = "lease_ms";
}  // namespace parameter

namespace figure {
inline constexpr const char* p50 = "p50";        // us, as all percentiles
inline constexpr const char* p90 = "p90";
inline constexpr const char* p99 = "p99";
inline constexpr const char* p999 = "p99.9";
inline constexpr const char* longest = "max";
inline constexpr const char* samples = "samples";
inline constexpr const char* throughput = "throughput";  // acquire and release, 1/s
inline constexpr const char* hand_offs = "hand-offs";    // 1/s
inline constexpr const char* fairness = "fairness";      // Jain's index of the turns that each contender had
inline constexpr const char* longest_wait = "longest wait";  // us
inline constexpr const char* operations = "operations";  // of the server, for each hand-off (contention), acquire and
                                                         // release (throughput), or renewed lease and second (holding)
inline constexpr const char* wake_ups = "wake-ups";      // messages from the server to waiters for each hand-off
inline constexpr const char* client_cpu = "client processor time";  // us, for each pair; percent of a core (holding)
inline constexpr const char* memory = "memory";          // B for each lease
}  // namespace figure

}  // namespace dlock::bench
