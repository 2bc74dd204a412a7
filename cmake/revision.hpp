// Which sources were built. The definitions are written when the tree is built: see DlockRevision.cmake.
#pragma once

namespace dlock {

// "0.1.0".
[[nodiscard]] const char* build_version() noexcept;

// What `git describe` says, with "-dirty" where files are changed; that of the source archive outside a checkout; empty
// if neither is known.
[[nodiscard]] const char* build_revision() noexcept;

}  // namespace dlock
