// A password on the command line is there for everybody who runs ps. The words cannot be kept secret, but they can be
// overwritten as soon as they were read.
#pragma once

#include <cstddef>
#include <string_view>

namespace dlock::cli {

// Where the URL begins in a word that has one: "--url=redis://..." or "redis://...". An option that was run together
// with its value, "--urlredis://...?a=b", is none.
[[nodiscard]] std::size_t start_of_url(std::string_view word) noexcept;

// Overwrites the secrets of every URL among dlock's own words, those in front of "--", in place: what /proc/PID/cmdline
// shows from then on is the URL as dlock itself prints it, and only the scheme of what cannot be read as a URL. Once
// the words were copied, and before anything else is started, so that nobody inherits them.
void hide_secrets(int count, char** words) noexcept;

}  // namespace dlock::cli
