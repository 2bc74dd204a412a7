// The file backend as a subject of the suite, in its own directory.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dlock/conformance/suite.hpp>

#include "backends/file/file_backend.hpp"
#include "backends/file/file_name.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::conformance {
namespace {

// The last base class of FileFixture to be destroyed, because clients use the directory until their end.
struct FileFixtureDirectory {
  rig::ScratchDirectory directory;
};

class FileFixture final : private FileFixtureDirectory, public UrlFixture {
 public:
  FileFixture() : UrlFixture("file://" + directory.path() + "/locks"), locks_(directory.path() + "/locks") {}

  [[nodiscard]] std::optional<Missing> missing(Feature feature) const override {
    const auto not_applicable = [](std::string why) { return Missing{Missing::Kind::not_applicable, std::move(why)}; };
    switch (feature) {
      case Feature::step_clock:
      case Feature::kill_hold:
        return std::nullopt;
      case Feature::stall:
      case Feature::delay_answers:
      case Feature::cut:
      case Feature::lose_answer:
        return not_applicable("the service is the kernel of this machine; there is no connection to disturb");
      case Feature::kill_session:
        return not_applicable("there is no session apart from the process");
      case Feature::restart:
        return not_applicable("there is no server");
      case Feature::residue:
      case Feature::requests:
        return not_applicable("there is no server that keeps or counts anything");
      case Feature::processes:
        break;
    }
    return UrlFixture::missing(feature);
  }
  [[nodiscard]] std::shared_ptr<ManualClock> clock() override {
    if (!clock_) clock_ = std::make_shared<ManualClock>();
    return clock_;
  }
  // Replaces the lock file by a copy, as an editor or a restored backup would.
  void kill_hold(LockKind kind, const std::string& name) override {
    const std::string copy = directory.path() + "/copy";
    const std::string lock_file = locks_ + file::subdirectory(kind) + "/" + file::encode_file_name(name);
    std::filesystem::copy_file(lock_file, copy, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(copy, lock_file);
  }

 private:
  const std::string locks_;
  std::shared_ptr<ManualClock> clock_;
};

}  // namespace
}  // namespace dlock::conformance

int main(int argc, char** argv) {
  using namespace dlock::conformance;
  using dlock::LockKind;
  add_subject({.name = "file",
               .make = [] { return std::make_unique<FileFixture>(); },
               .client_tests = false,
               .kinds = {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election},
               .untested = std::vector<std::string>()});
  return run(argc, argv);
}
