// What a user should know about the cluster that locks are to be in.
#pragma once

#include <string_view>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/etcd/connection/client.hpp"
#include "backends/etcd/connection/session.hpp"
#include "backends/etcd/wire/messages.hpp"

namespace dlock::etcd {

// Answers within the response timeout. In tasks only.
void diagnose(Client& client, const Session& session, Backend::Handler<std::vector<Finding>> done);

[[nodiscard]] Finding judge_version(std::string_view version);
[[nodiscard]] Finding judge_size(std::int64_t bytes);

}  // namespace dlock::etcd
