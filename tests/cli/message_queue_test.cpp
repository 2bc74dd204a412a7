// A thread of the queue writes messages in their order. Messages that find no room are counted.
#include "cli/message_queue.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "torture/rig/hang_guard.hpp"

namespace dlock::cli {
namespace {

using dlock::rig::hang_guard;

// Takes what the queue writes. While it is closed, a write does not return.
class Paper {
 public:
  void write(std::string_view text) {
    sigset_t blocked;
    (void)::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    std::unique_lock lock(mutex_);
    begun_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    text_ += sigismember(&blocked, SIGTERM) == 1 ? text : "SIGTERM is not blocked";
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait_for_write() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, hang_guard, [this] { return begun_; })) throw std::runtime_error("hang: no write");
  }
  [[nodiscard]] std::string text() {
    const std::scoped_lock lock(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  bool begun_ = false;
  std::string text_;
};

class MessageQueueTest : public testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<MessageQueue> make_queue(std::size_t room = 20) const {
    return std::make_unique<MessageQueue>([paper = paper](std::string_view text) { paper->write(text); }, room);
  }
  // The queue's thread then waits in the write of "one".
  [[nodiscard]] std::unique_ptr<MessageQueue> make_blocked_queue(std::size_t room = 20) const {
    auto queue = make_queue(room);
    queue->push("one\n");
    paper->wait_for_write();
    return queue;
  }

  const std::shared_ptr<Paper> paper = std::make_shared<Paper>();  // the thread may outlive the queue
};

TEST_F(MessageQueueTest, Messages_AreWrittenInTheirOrder) {
  const auto queue = make_queue();
  paper->open();
  std::string expected;
  for (int i = 0; i < 200; ++i) {
    queue->push(std::to_string(i) + "\n");
    expected += std::to_string(i) + "\n";
    if (i % 3 == 0) {
      ASSERT_TRUE(queue->flush(hang_guard));
      ASSERT_EQ(paper->text(), expected);
    }
  }
}

TEST_F(MessageQueueTest, WriteThatBlocks_DropsMessagesWithoutRoom) {
  const auto queue = make_blocked_queue();
  const std::string fills(19, '2');
  for (const std::string& message : {fills, std::string("three"), std::string("four")}) queue->push(message + "\n");
  EXPECT_EQ(paper->text(), "");
  paper->open();
  ASSERT_TRUE(queue->flush(hang_guard));
  const std::string noted =
      "one\n" + fills + "\ndlock: 2 messages were dropped, because nothing was read for too long\n";
  EXPECT_EQ(paper->text(), noted);
  queue->push("five\n");
  ASSERT_TRUE(queue->flush(hang_guard));
  queue->drop();                       // a message that could not be made
  queue->push(std::string(200, 'x'));  // longer than the room
  ASSERT_TRUE(queue->flush(hang_guard));
  EXPECT_EQ(paper->text(), noted + "five\ndlock: 1 message was dropped, because nothing was read for too long\n" +
                               std::string(200, 'x'));
}

TEST_F(MessageQueueTest, WriteThatBlocks_DelaysNeitherFlushNorEnd) {
  auto queue = make_blocked_queue();
  queue->push("two\n");
  EXPECT_FALSE(queue->flush(std::chrono::milliseconds(1)));
  queue.reset();
  EXPECT_EQ(paper->text(), "");
  paper->open();  // ends the thread
}

}  // namespace
}  // namespace dlock::cli
