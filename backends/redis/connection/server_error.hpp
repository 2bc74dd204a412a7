// What an error reply means. Redis puts a code in front of most of its errors; the sentence behind it changes between
// versions. No I/O.
#pragma once

#include <string>
#include <string_view>

#include <dlock/error.hpp>

#include "backends/redis/connection/reply.hpp"

namespace dlock::redis {

enum class ServerError {
  no_script,    // NOSCRIPT: the server does not have the script (any more); send it whole
  loading,      // LOADING: it has just started
  busy,         // BUSY: a script has been running for too long
  read_only,    // READONLY, REDIRECT: a replica, or a master that was demoted
  master_down,  // MASTERDOWN: a replica without its master
  no_replicas,  // NOREPLICAS: fewer than min-replicas-to-write
  out_of_memory,
  misconfigured,  // MISCONF: it cannot save to disk and therefore refuses to write
  too_many_clients,
  interrupted,      // UNBLOCKED: the server became a replica during WAIT, or an administrator ended it
  no_auth,          // NOAUTH: it requires a password
  wrong_password,   // WRONGPASS, and AUTH where there is no password
  no_permission,    // NOPERM, DENIED, and the same inside a script
  wrong_type,       // the key holds something else
  moved,            // MOVED: another node of the cluster has the slot
  ask,              // ASK: the slot is moving, and a different node has this key
  try_again,        // TRYAGAIN: the slot is moving, and so far only some of the keys have moved
  cluster_down,     // CLUSTERDOWN: no node has the slot, or too many nodes are down
  cluster,          // CROSSSLOT, ...: from a node of a cluster
  no_cluster,       // a server that is no node of a cluster
  no_such_db,       // SELECT of a database that does not exist
  unknown_command,  // the server is too old, or the command was renamed
  other,
};

[[nodiscard]] ServerError classify(std::string_view text) noexcept;

// For the caller. Errors that an administrator can end, of the server or its data, are errc::unavailable. Each known
// error means that the command was not applied. An unknown one (`other`) is errc::ambiguous: it may have been applied,
// and the error may pass, so a try fails, and a wait repeats the request.
[[nodiscard]] Failure to_failure(std::string_view text);

// The failure for an unexpected reply, be it an error or not.
[[nodiscard]] Failure unexpected(std::string_view to_what, const Reply& reply);

// Whether Cluster redirects or retries the request.
[[nodiscard]] bool is_about_cluster(ServerError error) noexcept;

// Whether this may be the wrong server (by now), so that the client has to reconnect.
[[nodiscard]] bool suggests_other_server(ServerError error) noexcept;

}  // namespace dlock::redis
