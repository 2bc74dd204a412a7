// The scripts of read-write locks and semaphores, run one by one on a real server.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "redis/script_fixture.hpp"

namespace dlock::test {

// How it is asked for.
struct As {
  std::string mode = "try";
  int lease_ms = 30'000;
  int alive_ms = 15'000;
  std::int64_t ticket = 0;
};

class SharingTest : public ScriptTest {
 protected:
  RedisReply enter(const std::string& value, const std::string& permits, bool shares, const As& as) {
    return run(redis::acquire_script(kind), {keys.lock, keys.queue, keys.alive, keys.fence},
               {value, std::to_string(as.lease_ms), as.mode, std::to_string(as.alive_ms), "1000", "host:1:" + value,
                std::to_string(as.ticket), permits, shares ? "1" : "0"});
  }
  RedisReply read(const std::string& value, const As& as = {}) { return enter(value, "0", true, as); }
  RedisReply write(const std::string& value, const As& as = {}) { return enter(value, "0", false, as); }
  RedisReply take(const std::string& value, int permits, const As& as = {}) {
    return enter(value, std::to_string(permits), true, as);
  }
  RedisReply leave(const std::string& value, const std::string& how = "stay") {
    return run(redis::release_script(kind), {keys.lock, keys.queue, keys.alive, keys.fence}, {value, "1000", how});
  }
  RedisReply extend(const std::string& value, int lease_ms = 30'000) {
    return run(redis::renew_script(kind), {keys.lock, keys.fence}, {value, std::to_string(lease_ms)});
  }
  // Holders by their values, in the order in which their leases end.
  std::vector<std::string> holders() {
    std::vector<std::string> out;
    for (const RedisReply& each : server.command({"ZRANGE", keys.lock, "0", "-1"}).elements) out.push_back(each.text);
    return out;
  }
  std::set<std::string> inside() {
    const auto all = holders();
    return {all.begin(), all.end()};
  }
  // As if so much time had passed for this holder, and a little more.
  void let_pass(const std::string& value, int ms) {
    (void)server.command({"ZINCRBY", keys.lock, std::to_string(-ms - 10), value});
  }
  static std::int64_t free_in(const RedisReply& busy) { return busy.elements.at(1).integer; }
  static std::int64_t rank_in(const RedisReply& busy) { return busy.elements.at(2).integer; }

  using Inside = std::set<std::string>;
  const LockKind kind = LockKind::semaphore;  // the scripts are the same for both kinds
};

}  // namespace dlock::test
