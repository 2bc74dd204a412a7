#include "bench/targets/postgres/libpq_url.hpp"

#include "bench/targets/service_target.hpp"

namespace dlock::bench {

std::string libpq_url(rig::UrlText url) {
  for (const char* ours : {"strategy", "schema", "durability", "key", "pooler", "max_connections", "lease", "label",
                           "response_timeout", "connect_timeout", "close_timeout"}) {
    url.remove(ours);
  }
  url.set("connect_timeout", std::to_string(answer_limit.count()));
  // A Unix socket, to libpq.
  if (url.original().hosts().empty() && !url.parameter("host")) url.set("host", "localhost");
  if (!url.parameter("gssencmode")) url.set("gssencmode", "disable");
  return url.text();
}

}  // namespace dlock::bench
