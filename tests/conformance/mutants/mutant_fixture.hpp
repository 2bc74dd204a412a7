// The mutant backend as a subject of the suite.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <dlock/conformance/fixture.hpp>

#include "mutants/mutant_service.hpp"

namespace dlock::conformance {

class MutantFixture final : public Fixture {
 public:
  explicit MutantFixture(Mutation mutation);
  ~MutantFixture() override;

  [[nodiscard]] std::string url() const override { return "mutant://"; }
  [[nodiscard]] Client make_client(ClientOptions options, Link link) override;
  [[nodiscard]] std::optional<Missing> missing(Feature feature) const override;
  [[nodiscard]] std::shared_ptr<ManualClock> clock() override;
  void kill_hold(const std::string& name) override;
  void cut() override { service_->cut(true); }
  void heal() override { service_->cut(false); }
  [[nodiscard]] std::size_t residue(const std::string& name) override;

 private:
  [[nodiscard]] TimePoint now() const;

  std::shared_ptr<MutantService> service_;
  std::shared_ptr<ManualClock> clock_;
};

}  // namespace dlock::conformance
