// dlock: one distributed-lock interface over several coordination services. This header is all a user needs.
//
//   #include <dlock/dlock.hpp>
//
//   int main() {
//     dlock::Client client = dlock::connect("file:///tmp/myapp");
//     dlock::DistributedLock lock = client.make_lock("orders/42");
//     if (auto lease = lock.try_acquire_for(std::chrono::seconds(2))) {
//       // ... work while lease->held(), passing lease->token() to whatever the lock protects
//     }
//   }
#pragma once

#include <dlock/capabilities.hpp>
#include <dlock/client.hpp>
#include <dlock/clock.hpp>
#include <dlock/duration.hpp>
#include <dlock/election.hpp>
#include <dlock/error.hpp>
#include <dlock/info.hpp>
#include <dlock/lease.hpp>
#include <dlock/lock.hpp>
#include <dlock/lock_kind.hpp>
#include <dlock/log.hpp>
#include <dlock/multi_lease.hpp>
#include <dlock/multi_lock.hpp>
#include <dlock/observer.hpp>
#include <dlock/options.hpp>
#include <dlock/read_write_lock.hpp>
#include <dlock/recursive_lock.hpp>
#include <dlock/semaphore.hpp>
#include <dlock/token.hpp>
