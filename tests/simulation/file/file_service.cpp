// The file backend over real files: several members in one process, whose locks exclude each other as those of
// processes do. The kernel answers every call, so nothing is lost; members stop, die and quit.

#include <dlock/spi/url.hpp>

#include "backends/file/file_backend.hpp"
#include "tests/simulation/service.hpp"
#include "tests/simulation/world.hpp"
#include "tests/support/recording_host.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::simulation {
namespace {

using namespace std::chrono_literals;

class FileService final : public Service {
 public:
  explicit FileService(Executor& executor) : host_(executor) {
    observer_ = file::make_file_backend(
        host_,
        {.url = Url::parse(url()), .holder = "observer", .lease = 1s, .response_timeout = 1s, .connect_timeout = 1s});
  }

  [[nodiscard]] std::string url() const override { return "file://" + scratch_.path() + "/locks"; }
  [[nodiscard]] std::unique_ptr<Backend> connect(int /*process*/, BackendHost& host,
                                                 const BackendConfig& config) override {
    return file::make_file_backend(host, config);
  }
  [[nodiscard]] std::size_t owners(LockKind kind, const std::string& name) override {
    return inspect(kind, name).holders.size();
  }
  [[nodiscard]] int holder(LockKind kind, const std::string& name) override { return process_of(inspect(kind, name)); }

 private:
  [[nodiscard]] LockInfo inspect(LockKind kind, const std::string& name) {
    LockInfo info;
    observer_->inspect(kind, name, [&info](Result<LockInfo> answer) {
      if (answer.ok()) info = std::move(answer.value());
    });
    return info;
  }

  rig::ScratchDirectory scratch_;
  test::RecordingHost host_;
  std::unique_ptr<Backend> observer_;
};

}  // namespace

std::vector<Subject> subjects() {
  return {{.name = "file",
           .kinds = {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election},
           .spoils = false,
           .queries = false,
           .recovery = 2s,
           .make = [](Executor& executor, std::uint64_t /*seed*/) { return std::make_unique<FileService>(executor); }}};
}

}  // namespace dlock::simulation
