// Tells the processor that this thread spins.
#pragma once

namespace dlock::util {

inline void pause_processor() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace dlock::util
