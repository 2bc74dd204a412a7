// Curator's locks and those of ZooKeeper's recipe in Java (Debian: libcurator-recipes-java; driven in JavaScript by
// librhino-java, which needs no compiler), and those of kazoo (python3-kazoo).
#pragma once

#include <string>

#include "network/foreign_client.hpp"

namespace dlock::test {

// address: of the server, as the libraries take it.
[[nodiscard]] ForeignClient::Command curator(const std::string& address);
[[nodiscard]] ForeignClient::Command kazoo(const std::string& address);

}  // namespace dlock::test
