// The statements that dlock prepares, on blocking libpq.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "bench/targets/floor.hpp"
#include "torture/rig/url_text.hpp"

namespace dlock::bench {

// The tables have to be there. Throws std::runtime_error if it cannot connect, std::invalid_argument for
// an unknown strategy.
[[nodiscard]] std::unique_ptr<Floor> make_postgres_same_requests(const rig::UrlText& url, std::string_view strategy,
                                                                 const std::string& schema, const std::string& name);

}  // namespace dlock::bench
