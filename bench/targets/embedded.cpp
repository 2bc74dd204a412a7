// memory:// and file://
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "bench/targets/service_target.hpp"
#include "util/unique_fd.hpp"

namespace dlock::bench {

namespace {

class MemoryTarget final : public ServiceTarget {
 public:
  MemoryTarget(const rig::UrlText& given, const std::string& strategy) : ServiceTarget(given, "memory", strategy) {}

  [[nodiscard]] bool has_floor() const override { return false; }
  [[nodiscard]] std::unique_ptr<Floor> floor_at(const rig::UrlText& /*url*/, const std::string& /*name*/) override {
    return nullptr;
  }
  void clean_up() override {}  // the store ends with its last client

 private:
  [[nodiscard]] rig::UrlText url_for(std::size_t locks) const override {
    rig::UrlText url = ServiceTarget::url_for(locks);
    if (given().original().hosts().empty()) url.set_hosts(store_);
    return url;
  }

  std::string store_ = own_name();
};

constexpr std::size_t record_size = 512;  // as long as dlock's

// A lock by hand on a file, as dlock needs it: the holder checks that it is still the file of that name, reads the last
// token, and writes the next one.
class FileFloor final : public Floor {
 public:
  // The directory must exist.
  FileFloor(const std::string& directory, std::string name) {
    std::replace(name.begin(), name.end(), '/', '%');
    path_ = directory + "/floor-" + name;
  }

  void acquire() override {
    util::UniqueFd file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file) throw std::runtime_error("the floor cannot open its file");
    struct stat opened = {};
    if (::fstat(file.get(), &opened) != 0) throw std::runtime_error("the floor cannot use its file");
    inode_ = opened.st_ino;
    require_free(set_lock(file.get(), F_WRLCK));
    if (!in_place() || !count_up(file.get())) throw std::runtime_error("the floor cannot use its file");
    file_ = std::move(file);
  }
  void release() override {
    require_held(static_cast<bool>(file_));
    const bool unlocked = in_place() && set_lock(file_.get(), F_UNLCK);
    file_.reset();
    if (!unlocked) throw std::runtime_error("the floor cannot unlock its file");
  }

 private:
  static bool set_lock(int fd, short type) {
    struct flock request = {};
    request.l_type = type;
    request.l_whence = SEEK_SET;
    return ::fcntl(fd, F_OFD_SETLK, &request) == 0;
  }
  // The file begins with the token.
  static bool count_up(int fd) {
    std::array<char, record_size> record;
    const auto size = ::pread(fd, record.data(), record.size(), 0);
    std::uint64_t token = 0;
    if (size > 0) (void)std::from_chars(record.data(), record.data() + size, token);  // 0: a new file
    record.fill('\n');
    (void)std::to_chars(record.data(), record.data() + record.size(), token + 1);
    return ::pwrite(fd, record.data(), record.size(), 0) == static_cast<ssize_t>(record.size());
  }
  [[nodiscard]] bool in_place() const {
    struct stat named = {};
    return ::lstat(path_.c_str(), &named) == 0 && named.st_ino == inode_;
  }

  std::string path_;
  ino_t inode_ = 0;  // of the file that was opened
  util::UniqueFd file_;
};

class FileTarget final : public ServiceTarget {
 public:
  explicit FileTarget(const rig::UrlText& given)
      : ServiceTarget(given, "file", ""),
        directory_((std::filesystem::path(given.original().path()) / own_name()).string()) {}

  void prepare() override {
    for (const Finding& each : connect(1).diagnose()) {
      if (each.check == "file system") add_setting(each.check, each.message);  // "ext4, local"
    }
  }
  [[nodiscard]] std::unique_ptr<Floor> floor_at(const rig::UrlText& /*url*/, const std::string& name) override {
    return std::make_unique<FileFloor>(directory_, name);
  }
  void clean_up() override { std::filesystem::remove_all(directory_); }

 private:
  [[nodiscard]] rig::UrlText url_for(std::size_t /*locks*/) const override {
    rig::UrlText url = given();
    url.set_path(directory_);
    return url;
  }

  std::string directory_;
};

}  // namespace

std::unique_ptr<ServiceTarget> make_memory_target(const rig::UrlText& url, const std::string& strategy) {
  return std::make_unique<MemoryTarget>(url, strategy);
}

std::unique_ptr<ServiceTarget> make_file_target(const rig::UrlText& url, const std::string& /*strategy*/) {
  return std::make_unique<FileTarget>(url);
}

}  // namespace dlock::bench
