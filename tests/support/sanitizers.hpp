// Whether this is a build with a sanitizer. Sanitizers find errors of memory and threads, but take ten times as long:
// what other builds repeat often, to meet a rare order of events, is repeated less often there.
#pragma once

namespace dlock::test {

#if defined(__has_feature)
inline constexpr bool thread_sanitizer = __has_feature(thread_sanitizer);
inline constexpr bool sanitized =
    thread_sanitizer || __has_feature(address_sanitizer) || __has_feature(memory_sanitizer);
#elif defined(__SANITIZE_THREAD__)  // GCC defines macros instead, and has no MemorySanitizer
inline constexpr bool thread_sanitizer = true;
inline constexpr bool sanitized = true;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool thread_sanitizer = false;
inline constexpr bool sanitized = true;
#else
inline constexpr bool thread_sanitizer = false;
inline constexpr bool sanitized = false;
#endif

}  // namespace dlock::test
