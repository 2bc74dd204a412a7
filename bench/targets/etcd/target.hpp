// etcd://, etcds://
#pragma once

#include <memory>

#include "bench/targets/service_target.hpp"

namespace dlock::bench {

[[nodiscard]] std::unique_ptr<ServiceTarget> make_etcd_target(const rig::UrlText& url);

}  // namespace dlock::bench
