// Checks of the cluster for dlock doctor.
#pragma once

#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/etcd/connection/client.hpp"
#include "backends/etcd/connection/session.hpp"

namespace dlock::etcd {

// Answers within the response timeout. In tasks only.
void diagnose(Client& client, const Session& session, Backend::Handler<std::vector<Finding>> done);

}  // namespace dlock::etcd
