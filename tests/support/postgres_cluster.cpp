#include "tests/support/postgres_cluster.hpp"

#include <sys/ipc.h>
#include <sys/shm.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "tests/support/unprivileged.hpp"
#include "torture/rig/child_process.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::test {

namespace {

// Where Debian puts them; elsewhere they are in PATH.
constexpr const char* debian_programs = "/usr/lib/postgresql/15/bin/";

class Template {
 public:
  explicit Template(const PreparedRole& role) {
    give_away(directory_.path());
    (void)rig::run_command(
        unprivileged({postgres_program("initdb"), "--pgdata=" + cluster(), "--username=postgres", "--auth=trust",
                      "--encoding=UTF8", "--locale=C.UTF-8", "--wal-segsize=1", "--no-sync"}));
    const std::string script = directory_.path() + "/script";
    std::ofstream file(script);
    // The fewer databases there are, the less there is to copy: the one that initdb made becomes the role's.
    file << "CREATE ROLE " << role.name << " LOGIN PASSWORD '" << role.password << "'\n"
         << "ALTER DATABASE postgres RENAME TO " << role.database << "\n"
         << "ALTER DATABASE " << role.database << " OWNER TO " << role.name << "\n"
         << "UPDATE pg_database SET datistemplate = false WHERE datname = 'template0'\n"
         << "DROP DATABASE template0\n";
    if (!file.flush()) throw std::runtime_error("cannot write " + script);
    file.close();
    give_away(script);
    // One process, without a port; it reads a statement from each line.
    (void)rig::run_command(
        unprivileged({"sh", "-c", R"(exec "$0" --single -F -c password_encryption=md5 -D "$1" template1 < "$2")",
                      postgres_program("postgres"), cluster(), script}));
  }
  [[nodiscard]] std::string cluster() const { return directory_.path() + "/data"; }

 private:
  rig::ScratchDirectory directory_;
};

}  // namespace

std::string postgres_program(const std::string& name) {
  const std::string path = debian_programs + name;
  return std::filesystem::exists(path) ? path : name;
}

void make_cluster(const std::string& directory, const PreparedRole& role) {
  static std::mutex mutex;
  static std::unique_ptr<Template> made;
  {
    const std::scoped_lock lock(mutex);
    if (!made) made = std::make_unique<Template>(role);
  }
  (void)rig::run_command(unprivileged({"cp", "-a", "--reflink=auto", made->cluster(), directory}));
}

void forget_shared_memory(const std::string& directory) {
  // Its seventh line: key and number of the segment that tells a second server that there is a first one.
  std::ifstream file(directory + "/postmaster.pid");
  std::string line;
  constexpr int lines_before = 6;
  for (int i = 0; i < lines_before; ++i) (void)std::getline(file, line);
  unsigned long key = 0;
  int id = -1;
  if (file >> key >> id) (void)::shmctl(id, IPC_RMID, nullptr);  // it may be gone
}

}  // namespace dlock::test
