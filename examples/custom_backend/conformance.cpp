// The conformance suite on the example's backend.
#include <memory>
#include <utility>

#include <dlock/client.hpp>
#include <dlock/conformance/suite.hpp>

#include "table_backend.hpp"

namespace {

namespace conformance = dlock::conformance;

// A fresh table for each test. There is no connection that could fail, and the table reads the clock of its clients, so
// the suite may step it.
class TableFixture final : public conformance::Fixture {
 public:
  std::string url() const override { return "table://"; }
  dlock::Client make_client(dlock::ClientOptions options, conformance::Link /*link*/) override {
    return dlock::connect(url(), std::move(options), example::make_table_backend(table_));
  }

  std::optional<conformance::Missing> missing(conformance::Feature feature) const override {
    using conformance::Feature;
    if (feature == Feature::step_clock || feature == Feature::kill_hold || feature == Feature::residue) return {};
    return conformance::Missing{conformance::Missing::Kind::not_applicable,
                                "calls to the table are plain function calls within one process"};
  }

  std::shared_ptr<dlock::ManualClock> clock() override {
    if (!manual_) clock_ = manual_ = std::make_shared<dlock::ManualClock>();
    return manual_;
  }
  void kill_hold(dlock::LockKind /*kind*/, const std::string& name) override {
    if (const auto row = table_->look(name)) (void)table_->end_after(name, row->owner, {}, *clock_);
  }
  std::size_t residue(dlock::LockKind /*kind*/, const std::string& name) override {
    const auto row = table_->look(name);
    return row && row->expires > clock_->now() ? 1 : 0;
  }

 private:
  const std::shared_ptr<example::LockTable> table_ = std::make_shared<example::LockTable>();
  std::shared_ptr<dlock::ManualClock> manual_;
  std::shared_ptr<dlock::Clock> clock_ = dlock::boottime_clock();
};

}  // namespace

int main(int argc, char** argv) {
  conformance::add_subject({"table", [] { return std::make_unique<TableFixture>(); }});
  return conformance::run(argc, argv);
}
