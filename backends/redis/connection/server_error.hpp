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
  no_auth,          // NOAUTH: it wants a password
  wrong_password,   // WRONGPASS, and AUTH where there is no password
  no_permission,    // NOPERM, DENIED, and the same inside a script
  wrong_type,       // the key holds something else
  moved,            // MOVED: another node of the cluster has the slot
  ask,              // ASK: and this key of it already
  try_again,        // TRYAGAIN: and some of the keys already
  cluster_down,     // CLUSTERDOWN: no node has the slot, or too many nodes are away
  cluster,          // CROSSSLOT, ...: the node of a cluster
  no_cluster,       // a server that is no node of a cluster
  no_such_db,       // SELECT of a database that does not exist
  unknown_command,  // older than what we need, or renamed away
  other,
};

[[nodiscard]] ServerError classify(std::string_view text) noexcept;

// For the caller. Errors that an administrator can end, of the server or its data, are errc::unavailable. Each known
// error means that the command was not applied. An unknown one (`other`) is errc::ambiguous: it may have been applied,
// and the error may pass, so a try fails, and a wait repeats the request.
[[nodiscard]] Failure to_failure(std::string_view text);

// For the caller: a reply that is not what it should be, an error or anything else.
[[nodiscard]] Failure unexpected(std::string_view to_what, const Reply& reply);

// Whether it says that this is not the node of the cluster, or not the time, for what was asked.
[[nodiscard]] bool is_about_cluster(ServerError error) noexcept;

// Whether this server may not be the one that we should talk to (any longer), so that the connection is best made
// again.
[[nodiscard]] bool suggests_other_server(ServerError error) noexcept;

}  // namespace dlock::redis
