// Which servers behind a redis://, redis-sentinel:// or redis-cluster:// URL take writes.
#pragma once

#include <string_view>
#include <vector>

#include "torture/rig/url_text.hpp"

namespace dlock::bench {

[[nodiscard]] bool on_cluster(const rig::UrlText& url);

// The same URL, with one of them as its only host, for each. These block, and throw std::runtime_error.
[[nodiscard]] std::vector<rig::UrlText> redis_masters(const rig::UrlText& url);
// That which the key is written to.
[[nodiscard]] rig::UrlText redis_master_of(const rig::UrlText& url, std::string_view key);

}  // namespace dlock::bench
