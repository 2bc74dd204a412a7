#include "file/file_fixture.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "backends/file/file_backend.hpp"
#include "backends/file/file_name.hpp"

namespace dlock::conformance {

FileFixture::FileFixture() : UrlFixture("file://" + directory.path() + "/locks"), locks_(directory.path() + "/locks") {}

std::optional<Missing> FileFixture::missing(Feature feature) const {
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

std::shared_ptr<ManualClock> FileFixture::clock() {
  if (!clock_) clock_ = std::make_shared<ManualClock>();
  return clock_;
}

void FileFixture::kill_hold(LockKind kind, const std::string& name) {
  const std::string copy = directory.path() + "/copy";
  const std::string lock_file = locks_ + file::subdirectory(kind) + "/" + file::encode_file_name(name);
  std::filesystem::copy_file(lock_file, copy, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::rename(copy, lock_file);
}

}  // namespace dlock::conformance
