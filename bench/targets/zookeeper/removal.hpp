// Removes whole trees of nodes.
#pragma once

#include <string>

struct _zhandle;

namespace dlock::bench {

// The node with all that is below it; there need be none. Throws std::runtime_error.
void remove_tree(_zhandle* handle, const std::string& path);

}  // namespace dlock::bench
