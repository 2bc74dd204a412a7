// Takes all free file descriptors from a running process, for as long as this object lives: what it has open stays
// open, and it can open nothing until it closes something.
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
  // Whether this is possible for a child of this process; if not, `why_not` has the reason.
  [[nodiscard]] static bool available(std::string& why_not);

  // Throws std::system_error if it is not possible.
  explicit UsedUpDescriptors(pid_t process);
  UsedUpDescriptors(const UsedUpDescriptors&) = delete;
  UsedUpDescriptors& operator=(const UsedUpDescriptors&) = delete;
  ~UsedUpDescriptors();

 private:
  pid_t process_;
  rlimit before_{};
};

}  // namespace dlock::torture
