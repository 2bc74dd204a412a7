// Tests of several servers that elect a leader, the same for each service that has such: its program says in
// "ensemble_kind.hpp" what they are like.
#pragma once

#include "ensemble_kind.hpp"
#include "integration_test.hpp"

namespace dlock::test {

// Three servers, which all such tests of the process share, until one fails.
class EnsembleTest : public ::testing::Test {
 protected:
  EnsembleTest() : ensemble(*(shared() ? shared() : shared() = std::make_unique<EnsembleKind::Servers>())) {
    ensemble.start();
    EnsembleKind::clear(ensemble);
  }
  // Servers that were killed or frozen serve again.
  ~EnsembleTest() override {
    thaw_all();
    if (HasFailure()) shared().reset();
  }

  [[nodiscard]] Client client(const std::string& parameters = EnsembleKind::long_session,
                              std::shared_ptr<Observer> observer = nullptr) const {
    ClientOptions options = EnsembleKind::options();
    options.observer = std::move(observer);
    return connect(ensemble.url(parameters), std::move(options));
  }
  // Of one server alone.
  [[nodiscard]] Client client_of(std::size_t index, const std::string& parameters = EnsembleKind::long_session) const {
    return connect(ensemble.server(index).url(parameters), EnsembleKind::options());
  }
  // Holders and waiters, by any server that runs.
  void await_residue(const std::string& name, std::size_t count) const {
    await("not so many are at " + name, [&] { return EnsembleKind::residue(ensemble, name) == count; });
  }
  void kill_all_but(std::size_t survivor) const {
    for (std::size_t i = 0; i < ensemble.size(); ++i) {
      if (i != survivor) ensemble.server(i).kill();
    }
  }
  void freeze_all_but(std::size_t survivor) const {
    for (std::size_t i = 0; i < ensemble.size(); ++i) {
      if (i != survivor) ensemble.server(i).freeze();
    }
  }
  void thaw_all() const {
    for (std::size_t i = 0; i < ensemble.size(); ++i) {
      if (ensemble.server(i).running()) ensemble.server(i).thaw();
    }
  }

 private:
  static std::unique_ptr<EnsembleKind::Servers>& shared() {
    static std::unique_ptr<EnsembleKind::Servers> servers;
    return servers;
  }

 protected:
  EnsembleKind::Servers& ensemble;
};

}  // namespace dlock::test
