#include "backends/redis/sentinel/sentinel_stream.hpp"

#include <utility>

#include <dlock/spi/lifetime.hpp>

namespace dlock::redis {

namespace {

class SentinelStream final : public common::Stream {
 public:
  SentinelStream(Executor& executor, const Options& options, Events& events, std::shared_ptr<Sentinels> sentinels,
                 StreamFactory streams)
      : executor_(executor),
        at_(options),
        events_(events),
        sentinels_(std::move(sentinels)),
        streams_(std::move(streams)) {
    at_.sentinel.reset();
  }
  ~SentinelStream() override { sentinels_->unfollow(this); }

  void open(TimePoint deadline) override {
    sentinels_->locate(lifetime_.guard([this, deadline](const Result<common::Host>& master) {
      if (!master.ok()) return events_.closed(master.failure(), false);
      at_.host = master.value();
      sentinels_->follow(this, [this](const common::Host& to) {
        if (to == at_.host) return;
        stream_->discard();
        events_.closed(
            {errc::unavailable, at_.endpoint() + ": the sentinels say that " + to.to_string() + " is the master now"},
            false);
      });
      stream_ = streams_(executor_, at_, events_);
      stream_->open(deadline);
    }));
  }
  void write(std::string_view bytes) override { stream_->write(bytes); }
  void flush() override { stream_->flush(); }
  void receive() override { stream_->receive(); }
  void discard() noexcept override {
    if (stream_) stream_->discard();
  }
  [[nodiscard]] bool tls_unanswered() const noexcept override { return stream_ && stream_->tls_unanswered(); }
  std::size_t refuse_peer() override { return stream_->refuse_peer(); }
  [[nodiscard]] std::string peer_name() const override { return at_.endpoint(); }
  [[nodiscard]] std::uint64_t sent() const noexcept override { return stream_ ? stream_->sent() : 0; }

 private:
  Executor& executor_;
  Options at_;  // the server itself
  Events& events_;
  const std::shared_ptr<Sentinels> sentinels_;
  const StreamFactory streams_;
  std::unique_ptr<common::Stream> stream_;  // once the master is located
  Lifetime lifetime_;
};

}  // namespace

StreamFactory sentinel_streams(std::shared_ptr<Sentinels> sentinels, StreamFactory streams) {
  return [sentinels = std::move(sentinels), streams = std::move(streams)](Executor& executor, const Options& options,
                                                                          common::Stream::Events& events) {
    return std::make_unique<SentinelStream>(executor, options, events, sentinels, streams);
  };
}

}  // namespace dlock::redis
