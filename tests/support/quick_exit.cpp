// Preloaded into PostgreSQL: a process that ends does not run the exit handlers of the libraries that it is linked
// with. Cleaning up OpenSSL alone is half of all that the process of a short connection does. What PostgreSQL itself
// has to do at the end, it has done before it calls exit().
#include <unistd.h>

#include <cstdio>

extern "C" [[noreturn]] void exit(int status) {  // NOLINT(readability-inconsistent-declaration-parameter-name)
  (void)std::fflush(nullptr);
  _exit(status);
}
