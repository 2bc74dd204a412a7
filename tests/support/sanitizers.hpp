// Whether this is a build with a sanitizer. Those show what is wrong with memory and threads, and take ten times as
// long: what is tried often in other builds, to meet a rare order of events, is tried less often there.
#pragma once

namespace dlock::test {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool address_sanitizer = true;
#elif defined(__has_feature)
inline constexpr bool address_sanitizer = __has_feature(address_sanitizer);
#else
inline constexpr bool address_sanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool thread_sanitizer = true;
#elif defined(__has_feature)
inline constexpr bool thread_sanitizer = __has_feature(thread_sanitizer);
#else
inline constexpr bool thread_sanitizer = false;
#endif

#if defined(__has_feature)  // GCC has none
inline constexpr bool memory_sanitizer = __has_feature(memory_sanitizer);
#else
inline constexpr bool memory_sanitizer = false;
#endif

inline constexpr bool sanitized = address_sanitizer || thread_sanitizer || memory_sanitizer;

}  // namespace dlock::test
