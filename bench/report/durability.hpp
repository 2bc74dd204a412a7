// What services remember of locks that they granted, as far as their settings tell.
#pragma once

#include "bench/report/result.hpp"

namespace dlock::bench {

enum class Durability {
  unknown,
  forgotten,     // a crash or a restart of the server frees all locks, or may
  last_moments,  // a crash of its machine may forget what was granted just before
  everything,    // each grant is on disk before it is answered
};

// Of services that several machines share: not "memory" and not "file".
[[nodiscard]] Durability durability_of(const ServiceInfo& service);

// The same of a failover: another server takes over from one that failed.
[[nodiscard]] Durability failover_of(const ServiceInfo& service);

// What is lost, in a few words: "last grants"
[[nodiscard]] const char* lost_text(Durability durability) noexcept;

// "grants are on disk before they are answered"
[[nodiscard]] const char* to_string(Durability durability) noexcept;

// Whether programs on several machines can share it.
[[nodiscard]] bool between_machines(const ServiceInfo& service) noexcept;

}  // namespace dlock::bench
