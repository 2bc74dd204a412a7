// The file backend as a subject of the suite, in a directory of its own.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <dlock/conformance/fixture.hpp>

#include "torture/rig/scratch_directory.hpp"

namespace dlock::conformance {

// The base class of FileFixture that is destroyed last, because clients use the directory to their end.
struct FileFixtureDirectory {
  rig::ScratchDirectory directory;
};

class FileFixture final : private FileFixtureDirectory, public UrlFixture {
 public:
  FileFixture();

  [[nodiscard]] std::optional<Missing> missing(Feature feature) const override;
  [[nodiscard]] std::shared_ptr<ManualClock> clock() override;
  // Puts a copy in the place of the lock file, as an editor or a restored backup would.
  void kill_hold(LockKind kind, const std::string& name) override;

 private:
  std::string locks_;
  std::shared_ptr<ManualClock> clock_;
};

}  // namespace dlock::conformance
