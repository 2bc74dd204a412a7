#include "bench/targets/embedded/target.hpp"

#include <filesystem>

#include "bench/targets/embedded/file_floor.hpp"
#include "bench/targets/embedded/file_system.hpp"
#include "bench/targets/own_name.hpp"

namespace dlock::bench {

namespace {

// What is done there is not counted, and there is nothing to connect to.
class EmbeddedTarget : public ServiceTarget {
 public:
  [[nodiscard]] std::optional<Operations> operations() override { return std::nullopt; }

 protected:
  using ServiceTarget::ServiceTarget;
};

class MemoryTarget final : public EmbeddedTarget {
 public:
  MemoryTarget(const rig::UrlText& given, const std::string& strategy) : EmbeddedTarget(given, "memory", strategy) {}

  // What it cannot be faster than is nothing at all.
  [[nodiscard]] bool has_floor() const override { return false; }
  [[nodiscard]] std::unique_ptr<Floor> floor_at(const rig::UrlText& /*url*/, const std::string& /*name*/) override {
    return nullptr;
  }
  // The store ends with its last client.
  void clean_up() override {}

 private:
  [[nodiscard]] rig::UrlText url_for(std::size_t /*locks*/) const override {
    rig::UrlText url = given();
    url.set("strategy", info().strategy);
    if (given().original().hosts().empty()) url.set_hosts(store_);
    return url;
  }

  std::string store_ = own_name();
};

class FileTarget final : public EmbeddedTarget {
 public:
  explicit FileTarget(const rig::UrlText& given)
      : EmbeddedTarget(given, "file", ""),
        directory_((std::filesystem::path(given.original().path()) / own_name()).string()) {}

  void prepare() override { add_setting("file system", file_system_of(directory_)); }
  [[nodiscard]] bool has_floor() const override { return true; }
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

const std::vector<std::string>& memory_strategies() {
  static const std::vector<std::string> all = {"queue", "watch", "poll"};
  return all;
}

std::unique_ptr<ServiceTarget> make_memory_target(const rig::UrlText& url, const std::string& strategy) {
  return std::make_unique<MemoryTarget>(url, strategy);
}

std::unique_ptr<ServiceTarget> make_file_target(const rig::UrlText& url) {
  return std::make_unique<FileTarget>(url);
}

}  // namespace dlock::bench
