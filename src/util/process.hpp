// Facts about this process that a lock library needs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace dlock::util {

// Grows by one in every child made by fork(). Reading it costs a load; a client remembers the value it was made under
// and refuses to work under another, because its engine thread did not come along.
[[nodiscard]] std::uint64_t fork_generation() noexcept;

// Short host name, process id, name of the program; printable, never empty.
[[nodiscard]] std::string host_name();
[[nodiscard]] std::string program_name();
[[nodiscard]] int process_id() noexcept;

// 64 bits from the kernel's random number generator. Any thread. Throws Error(unavailable) if the kernel refuses, as
// under a filter of system calls.
[[nodiscard]] std::uint64_t kernel_random();

// The same as a function for one client, which never throws: if the kernel refuses later, its numbers follow from what
// the kernel gave in this call. Throws Error(unavailable) if the kernel gives nothing now.
[[nodiscard]] std::function<std::uint64_t()> kernel_random_or_derived();

}  // namespace dlock::util
