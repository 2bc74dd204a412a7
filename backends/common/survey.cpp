#include "backends/common/survey.hpp"

#include <algorithm>

namespace dlock::common {

void Survey::run(std::vector<std::string> names, Look look, Backend::Handler<std::vector<LockInfo>> done) {
  const std::shared_ptr<Survey> survey(new Survey(std::move(names), std::move(look), std::move(done)));
  survey->next();
}

void Survey::next() {
  if (std::exchange(going_on_, true)) return;  // an answer inside the loop below
  while (done_ && under_way_ < looks_at_once && next_ < names_.size()) {
    ++under_way_;
    look_(names_[next_++], [self = shared_from_this()](Result<std::optional<LockInfo>> info) {
      --self->under_way_;
      self->seen(std::move(info));
    });
  }
  going_on_ = false;
  if (under_way_ == 0 && next_ == names_.size()) {
    std::sort(found_.begin(), found_.end(), [](const LockInfo& a, const LockInfo& b) { return a.name < b.name; });
    finish(std::move(found_));
  }
}

void Survey::seen(Result<std::optional<LockInfo>> info) {
  if (!done_) return;
  if (!info.ok()) return finish(info.failure());
  if (info.value()) found_.push_back(*std::move(info.value()));
  next();
}

void Survey::finish(Result<std::vector<LockInfo>> result) {
  if (const auto done = std::exchange(done_, nullptr)) done(std::move(result));
}

}  // namespace dlock::common
