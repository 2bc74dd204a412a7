// Messages are written in order, by somebody else than whoever has them; those that find no room are counted.
#include "cli/message_queue.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "torture/rig/hang_guard.hpp"

namespace dlock::cli {
namespace {

using dlock::rig::hang_guard;

constexpr std::chrono::milliseconds impatient{1};

// What is written to. While it is shut, a write does not return.
class Paper {
 public:
  void write(std::string_view text) {
    std::unique_lock lock(mutex_);
    ++begun_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    text_ += text;
    sigset_t blocked;
    (void)::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    hears_signals_ = hears_signals_ || sigismember(&blocked, SIGTERM) == 0;
  }
  void set_open(bool open) {
    const std::scoped_lock lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  void wait_for_write() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, hang_guard, [this] { return begun_ > 0; })) throw std::runtime_error("hang: no write");
  }
  [[nodiscard]] std::string text() {
    const std::scoped_lock lock(mutex_);
    return text_;
  }
  [[nodiscard]] bool hears_signals() {
    const std::scoped_lock lock(mutex_);
    return hears_signals_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  int begun_ = 0;
  bool hears_signals_ = false;
  std::string text_;
};

class MessageQueueTest : public testing::Test {
 protected:
  static constexpr std::size_t room = 20;

  // Shuts the paper, and waits until the queue's thread is held up by it with this message.
  void hold_up(const std::string& message) {
    paper->set_open(false);
    queue->push(message);
    paper->wait_for_write();
  }
  [[nodiscard]] std::string all_written() {
    paper->set_open(true);
    EXPECT_TRUE(queue->flush(hang_guard));
    return paper->text();
  }

  // The queue's thread may still be at it when the queue is gone.
  const std::shared_ptr<Paper> paper = std::make_shared<Paper>();
  std::optional<MessageQueue> queue{std::in_place, [paper = paper](std::string_view text) { paper->write(text); },
                                    room};
};

TEST_F(MessageQueueTest, WritesAllInTheOrderOfTheirComing) {
  std::string expected;
  for (int i = 0; i < 200; ++i) {
    queue->push(std::to_string(i) + "\n");
    expected += std::to_string(i) + "\n";
    if (i % 3 == 0) {
      ASSERT_TRUE(queue->flush(hang_guard));
      ASSERT_EQ(paper->text(), expected);
    }
  }
  EXPECT_EQ(all_written(), expected);
}

TEST_F(MessageQueueTest, LetsNobodyWaitWhoHasSomethingToSay) {
  hold_up("one\n");
  queue->push("two\n");
  queue->push("three\n");
  EXPECT_EQ(paper->text(), "");
  EXPECT_EQ(all_written(), "one\ntwo\nthree\n");
}

TEST_F(MessageQueueTest, CountsWhatFoundNoRoomAndSaysSoInItsPlace) {
  hold_up("one\n");
  queue->push(std::string(room - 1, '2') + "\n");
  queue->push("three\n");
  queue->push("four\n");
  EXPECT_EQ(all_written(), "one\n" + std::string(room - 1, '2') +
                               "\ndlock: 2 messages were dropped, because nothing was read for too long\n");
  queue->push("five\n");
  ASSERT_TRUE(queue->flush(hang_guard));
  EXPECT_TRUE(paper->text().ends_with("too long\nfive\n")) << paper->text();
}

TEST_F(MessageQueueTest, SaysBeforeALaterMessageThatEarlierOnesWereDropped) {
  MessageQueue roomy([paper = paper](std::string_view text) { paper->write(text); }, 1000);
  paper->set_open(false);
  roomy.push("one\n");
  paper->wait_for_write();
  roomy.push("two\n");
  roomy.push(std::string(2000, '3'));
  roomy.push("four\n");
  paper->set_open(true);
  ASSERT_TRUE(roomy.flush(hang_guard));
  EXPECT_EQ(paper->text(), "one\ntwo\ndlock: 1 message was dropped, because nothing was read for too long\nfour\n");
}

TEST_F(MessageQueueTest, TakesOneMessageThatIsLongerThanItsRoom) {
  const std::string longer(room * 10, 'x');
  queue->push(longer);
  EXPECT_EQ(all_written(), longer);
}

TEST_F(MessageQueueTest, CountsAMessageThatCouldNotBeMade) {
  queue->drop();
  queue->push("one\n");
  EXPECT_EQ(all_written(), "dlock: 1 message was dropped, because nothing was read for too long\none\n");
}

TEST_F(MessageQueueTest, AFlushGivesUpAWriteThatDoesNotReturn) {
  hold_up("one\n");
  EXPECT_FALSE(queue->flush(impatient));
  EXPECT_EQ(all_written(), "one\n");
}

TEST_F(MessageQueueTest, EndsAlthoughAWriteDoesNotReturn) {
  hold_up("one\n");
  queue->push("two\n");
  queue.reset();
  EXPECT_EQ(paper->text(), "");
  paper->set_open(true);  // so that its thread ends, too
}

TEST_F(MessageQueueTest, LeavesSignalsToTheThreadsThatExpectThem) {
  queue->push("one\n");
  EXPECT_EQ(all_written(), "one\n");
  EXPECT_FALSE(paper->hears_signals());
}

}  // namespace
}  // namespace dlock::cli
