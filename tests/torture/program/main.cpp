// A worker as a program: dlock_torture_worker PLAN.
#include <iostream>

#include "torture/worker/worker.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: dlock_torture_worker PLAN\n";
    return 64;
  }
  return dlock::torture::worker_main(argv[1]);
}
