#include "backends/common/connection_news.hpp"

#include <utility>

namespace dlock::common {

void ConnectionNews::Source::connected() {
  if (std::exchange(broken_, false)) --news_.broken_;
  if (news_.broken_ > 0 || std::exchange(news_.connected_, true)) return;
  news_.tell({.state = ConnectionEvent::State::connected, .reason = {}});
}

void ConnectionNews::Source::broken(const Failure& why) {
  if (std::exchange(broken_, true) || news_.broken_++ > 0) return;
  news_.connected_ = false;
  news_.tell({.state = ConnectionEvent::State::reconnecting, .reason = why});
}

void ConnectionNews::tell(ConnectionEvent event) {
  if (told_) host_.connection(std::move(event));
}

}  // namespace dlock::common
