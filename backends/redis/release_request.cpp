#include "backends/redis/release_request.hpp"

#include <utility>

#include "backends/redis/acquirer.hpp"
#include "backends/redis/answers.hpp"
#include "backends/redis/keys.hpp"
#include "backends/redis/times.hpp"

namespace dlock::redis {

detail::Releases::Ask release_requests(CommandClient& commands, CommandClient& acquiring, std::string client,
                                       std::function<void()> publish_forbidden) {
  using Reason = detail::Releases::Reason;
  return [&commands, &acquiring, client = std::move(client), publish_forbidden = std::move(publish_forbidden)](
             const std::string& name, const OwnerId& owner, Reason reason, TimePoint deadline,
             detail::Releases::Answer done) {
    const bool leaves = reason == Reason::give_up;
    Keys keys = keys_of(commands.options().prefix, name);
    (void)(leaves ? acquiring : commands)
        .run(release_script(), {std::move(keys.lock), std::move(keys.queue), std::move(keys.alive)},
             {value_of(client, owner), in_milliseconds(grant_for), leaves ? "leave" : "stay"}, deadline,
             [publish_forbidden, done = std::move(done)](Result<Reply> reply, TimePoint) {
               if (!reply.ok()) return done(reply.failure());
               auto answer = read_release(reply.value());
               if (!answer.ok()) return done(answer.failure());
               if (!answer.value().may_publish) publish_forbidden();
               done(answer.value().was == ReleaseAnswer::Was::ours);
             });
  };
}

}  // namespace dlock::redis
