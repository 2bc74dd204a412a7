// A script that the server can run.
#pragma once

#include <string_view>

namespace dlock::redis {

struct Script {
  std::string_view name;  // for messages
  std::string_view text;
  std::string_view sha1;  // of the text: how the server knows it; a test compares it with what SCRIPT LOAD says
};

}  // namespace dlock::redis
