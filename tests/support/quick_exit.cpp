// Preloaded into PostgreSQL: a process that ends does not run the exit handlers of linked libraries. OpenSSL's alone
// take half of the time of a process for a short connection. PostgreSQL's own clean-up is complete before it calls
// exit().
#include <unistd.h>

#include <cstdio>

extern "C" [[noreturn]] void exit(int status) {  // NOLINT(readability-inconsistent-declaration-parameter-name)
  (void)std::fflush(nullptr);
  _exit(status);
}
