// A lock service of its own for a set of benchmarks, and one client of it.
#pragma once

#include <memory>
#include <string>

#include <dlock/dlock.hpp>

#include "torture/rig/scratch_directory.hpp"

namespace bench {

using dlock::rig::ScratchDirectory;

class Service {
 public:
  Service(std::string name, const std::string& url) : name_(std::move(name)), client_(dlock::connect(url)) {}

  // What its benchmarks are called.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const dlock::Client& client() const noexcept { return client_; }

 private:
  std::string name_;
  dlock::Client client_;
};

// Each file of benchmarks has one of these, called by main().

void register_acquire_release(const std::shared_ptr<Service>& service);
// Bytes for each held lease and each waiting acquire.
void register_footprint();
// The processor time that renewing many leases takes.
void register_keeper();
// How many leases are lost, and how late it is signalled, where the engine has too much to do.
void register_late_losses();

}  // namespace bench
