// Clang's thread-safety attributes under this library's names; nothing on other compilers.
// https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#pragma once

#if defined(__clang__)
#define DLOCK_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define DLOCK_THREAD_ATTRIBUTE(x)
#endif

#define DLOCK_CAPABILITY(x) DLOCK_THREAD_ATTRIBUTE(capability(x))
#define DLOCK_SCOPED_CAPABILITY DLOCK_THREAD_ATTRIBUTE(scoped_lockable)
#define DLOCK_GUARDED_BY(x) DLOCK_THREAD_ATTRIBUTE(guarded_by(x))
#define DLOCK_REQUIRES(...) DLOCK_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define DLOCK_ACQUIRE(...) DLOCK_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define DLOCK_TRY_ACQUIRE(...) DLOCK_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define DLOCK_RELEASE(...) DLOCK_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define DLOCK_EXCLUDES(...) DLOCK_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define DLOCK_NO_THREAD_SAFETY_ANALYSIS DLOCK_THREAD_ATTRIBUTE(no_thread_safety_analysis)
