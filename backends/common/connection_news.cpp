#include "backends/common/connection_news.hpp"

#include <algorithm>
#include <utility>

namespace dlock::common {

namespace {

// A limit, because each failure may have a different text.
constexpr std::size_t most_reasons = 8;

}  // namespace

void ConnectionNews::Source::connected() {
  if (!reasons_.empty()) --news_.broken_;
  reasons_.clear();
  if (news_.broken_ > 0 || std::exchange(news_.connected_, true)) return;
  news_.tell({.state = ConnectionEvent::State::connected, .reason = {}});
}

void ConnectionNews::Source::broken(const Failure& why) {
  const bool begins = reasons_.empty();
  const auto is_same = [&](const Failure& other) { return other.code == why.code && other.detail == why.detail; };
  if (reasons_.size() == most_reasons || std::any_of(reasons_.begin(), reasons_.end(), is_same)) return;
  reasons_.push_back(why);
  if (begins && news_.broken_++ > 0) return;
  news_.connected_ = false;
  news_.tell({.state = ConnectionEvent::State::reconnecting, .reason = why});
}

void ConnectionNews::tell(ConnectionEvent event) {
  if (told_) host_.connection(std::move(event));
}

}  // namespace dlock::common
