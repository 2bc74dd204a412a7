// What a sanitizer does here unless ASAN_OPTIONS says otherwise. A build without has no use for it.

// Real stack frames: those that are to be found after a return are memory of their own for each of the many threads,
// and twice the time. The tests of the units look for such.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "detect_stack_use_after_return=0";
}
