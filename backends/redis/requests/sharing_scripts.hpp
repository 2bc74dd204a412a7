// The scripts of read-write locks and semaphores. Each does what the plain lock's of the same name does, and answers in
// the same form; what is different is said here.
#pragma once

#include "backends/redis/connection/script.hpp"

namespace dlock::redis {

// ARGV goes on: permits (0: a read-write lock), 1 if held with others.
// mode "mark": as "try", and a writer that finds it busy keeps readers that do not queue out for the next `alive` ms.
// Also answers {2, permits}: others use the semaphore with another number of them.
[[nodiscard]] const Script& sharing_acquire_script() noexcept;

[[nodiscard]] const Script& sharing_renew_script() noexcept;

// KEYS goes on: fence.  Lets in those that fit then. What is not ours has no owner: -1.
[[nodiscard]] const Script& sharing_release_script() noexcept;

// Answers {permits, last token or nil, length of the queue, holders}, each holder as remaining ms, 1 if held with
// others, and "<token> <holder>" or "" if it has not confirmed its grant.
[[nodiscard]] const Script& sharing_inspect_script() noexcept;

[[nodiscard]] const Script& sharing_forget_script() noexcept;

}  // namespace dlock::redis
