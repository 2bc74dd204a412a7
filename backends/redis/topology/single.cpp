#include "backends/redis/topology/single.hpp"

#include <utility>

#include "backends/redis/administration/diagnosis.hpp"

namespace dlock::redis {

std::uint64_t Single::send(std::string_view /*key*/, Request request, TimePoint deadline, Handler done) {
  auto answered = [this, done = std::move(done)](Result<Reply> reply, TimePoint sent) {
    done(&node_, std::move(reply), sent);
  };
  CommandClient& client = node_.line(request.line);
  if (request.script == nullptr) return client.request(std::move(request.words), deadline, std::move(answered));
  return client.run(*request.script, std::move(request.words), deadline, std::move(answered), request.at_the_end);
}

void Single::diagnose(Backend::Handler<std::vector<Finding>> done) {
  redis::diagnose(node_.commands(), std::move(done));
}

}  // namespace dlock::redis
