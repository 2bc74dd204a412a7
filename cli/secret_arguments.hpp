// A password on the command line is visible to every user of ps. The words cannot be hidden, but they can be
// overwritten as soon as they are read.
#pragma once

#include <cstddef>
#include <string_view>

namespace dlock::cli {

// Where the URL begins in a word that has one: "--url=redis://..." or "redis://...". Not in an option joined with its
// value, "--urlredis://...?a=b".
[[nodiscard]] std::size_t start_of_url(std::string_view word) noexcept;

// Overwrites the secrets of every URL among dlock's own words, those before "--", in place: /proc/PID/cmdline then
// shows the URL as dlock prints it, or only the scheme of an invalid URL. Call it once the words are copied, and before
// anything else is started that would inherit them.
void hide_secrets(int count, char** words) noexcept;

}  // namespace dlock::cli
