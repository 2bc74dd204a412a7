// Takes all free file descriptors from a process that runs, for as long as the object lives: whatever it has open stays
// open, and nothing more can be opened until it closes something.
//
//   {
//     UsedUpDescriptors none_left(child.pid());
//     ...                                             // accept(), open(), socket() of the child fail with EMFILE
//   }
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <string>

namespace dlock::torture {

class UsedUpDescriptors {
 public:
  // Whether it can be done to a process that this one has started; the reason if not.
  [[nodiscard]] static bool available(std::string& why_not);

  // Throws std::system_error where it cannot be done.
  explicit UsedUpDescriptors(pid_t process);
  UsedUpDescriptors(const UsedUpDescriptors&) = delete;
  UsedUpDescriptors& operator=(const UsedUpDescriptors&) = delete;
  ~UsedUpDescriptors();

 private:
  pid_t process_;
  rlimit before_{};
};

}  // namespace dlock::torture
