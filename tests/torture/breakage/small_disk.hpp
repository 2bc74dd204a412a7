// A file system of a few pages, which is easily full.
//
//   SmallDisk disk(scratch.path() + "/disk");
//   Client client = connect("file://" + disk.path());
//   disk.fill();                                      // No space left on device
//   disk.free();
//
// In memory, mounted while the object lives. Needs root.
#pragma once

#include <string>

namespace dlock::torture {

class SmallDisk {
 public:
  // Whether it can be done; the reason if not.
  [[nodiscard]] static bool available(std::string& why_not);

  // Makes the directory and mounts it there. Throws std::system_error.
  explicit SmallDisk(std::string directory);
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  // Processes that still have files open there may go on using them.
  ~SmallDisk();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  // Uses up all space, but no inodes. Throws std::system_error.
  void fill();
  // Gives back what fill() used up.
  void free();

 private:
  [[nodiscard]] std::string filler() const { return path_ + "/filler"; }

  std::string path_;
};

}  // namespace dlock::torture
