#include "backends/redis/topology/single.hpp"

#include <utility>

#include "backends/redis/administration/diagnosis.hpp"

namespace dlock::redis {

std::uint64_t Single::send(std::string_view /*key*/, Request request, TimePoint deadline, Handler done) {
  auto answered = [this, done = std::move(done)](Result<Reply> reply, TimePoint sent) {
    done(&node_, std::move(reply), sent);
  };
  return node_.send(std::move(request), deadline, std::move(answered));
}

void Single::diagnose(Backend::Handler<std::vector<Finding>> done) {
  redis::diagnose(node_.commands(), std::move(done));
}

}  // namespace dlock::redis
