#include "torture/nemesis/used_up_descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>

namespace dlock::torture {
namespace {

void set_limit(pid_t process, const rlimit* to, rlimit* before) {
  if (::prlimit(process, RLIMIT_NOFILE, to, before) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot limit the descriptors of another process");
  }
}

// The limit applies to the numbers of descriptors, and a new one gets the lowest free number.
rlim_t lowest_free(pid_t process) {
  std::set<rlim_t> open;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd")) {
    open.insert(std::stoul(entry.path().filename().string()));
  }
  // In this process, the list includes descriptors that were open only to read it.
  if (process == ::getpid()) std::erase_if(open, [](rlim_t fd) { return ::fcntl(static_cast<int>(fd), F_GETFD) < 0; });
  rlim_t number = 0;
  while (open.contains(number)) ++number;
  return number;
}

}  // namespace

bool UsedUpDescriptors::available(std::string& why_not) {
  try {
    rlimit now{};
    set_limit(::getpid(), nullptr, &now);
    (void)lowest_free(::getpid());
    return true;
  } catch (const std::system_error& e) {
    why_not = e.what();
    return false;
  }
}

UsedUpDescriptors::UsedUpDescriptors(pid_t process) : process_(process) {
  set_limit(process_, nullptr, &before_);
  rlimit none_left = before_;
  none_left.rlim_cur = std::min(lowest_free(process_), before_.rlim_cur);
  set_limit(process_, &none_left, nullptr);
}

UsedUpDescriptors::~UsedUpDescriptors() {
  (void)::prlimit(process_, RLIMIT_NOFILE, &before_, nullptr);  // fails if the process has ended
}

}  // namespace dlock::torture
