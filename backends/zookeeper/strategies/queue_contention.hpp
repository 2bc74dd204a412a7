// One acquire in the queue, from the first request to the grant or to giving up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/backoff.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/zookeeper/strategies/queue_place.hpp"
#include "backends/zookeeper/strategies/sequential.hpp"

namespace dlock::zookeeper {

//   stage       | what it waits for                             | its place
//   ------------+-----------------------------------------------+-----------------------------------
//   unready     | a session                                     | none
//   asking      | an answer                                     | none, asked, unknown, or there
//   pausing     | a moment, or a connection                     | none, unknown, or there
//   watching    | a change before us                            | there
//   over        | nothing: granted, refused, busy or given up   | none
class QueueContention final : public Contention {
 public:
  QueueContention(Sequential& client, std::uint64_t id, const LockRequest& request, GrantSink& sink);
  ~QueueContention() override;

  void start();

  void session_ready();
  void session_suspended(const Failure& why);
  void session_lost(const Failure& why);

 private:
  using Next = QueueWalk::Next;
  enum class Stage { unready, asking, pausing, watching, over };

  // Getting a place.
  void begin();
  void look_first();
  void join();
  void enqueue();
  void placed(const QueuePlace::Answer& answer);
  // In the queue.
  void list(bool watched);
  void ask_for_list(bool watched);
  void listed(const Outcome& outcome, const std::vector<std::string>& children);
  void outside_semaphore(std::function<void()> go_on);
  void follow(QueueWalk::Step step);
  void watch(const std::string& node);
  void weigh(const std::string& node);
  void verify(const std::string& node);
  void confirm();
  void announce();
  void changed();
  void keep_watching();

  void grant();
  void refuse(Failure why);
  void fail(Failure why);
  void busy();
  void start_over();
  void resume();
  // Whether requests may be sent; if not, goes on later.
  [[nodiscard]] bool can_ask();
  void retry_later();
  // The same, and says why; the end of a try.
  void pause(const Failure& why);
  // What went wrong with a question, other than that the node is not there.
  void trouble(const Outcome& outcome);
  void wait_for_session();
  // Nothing that is under way concerns us any more.
  void leave(Stage stage);
  [[nodiscard]] std::string path_of(const std::string& node) const { return lock_path_ + "/" + node; }
  [[nodiscard]] std::optional<Queue> judge(const std::vector<std::string>& children);
  // The watch for the next request, in place of the one before; nullptr where none can be set.
  [[nodiscard]] Watches::Interest* new_watch(Watches::Kind kind, const std::string& path);

  // Calls the member function with the answer, unless this is gone or has moved on.
  template <class... Args>
  [[nodiscard]] auto when_answered(void (QueueContention::*f)(const Args&...)) {
    return guarded([this, f](const Args&... args) { (this->*f)(args...); });
  }
  template <class F>
  [[nodiscard]] auto guarded(F f) {
    return lifetime_.guard([this, round = round_, f = std::move(f)](auto&&... args) {
      if (round == round_) f(args...);
    });
  }

  Sequential& client_;
  const std::uint64_t id_;
  const LockRequest request_;
  GrantSink& sink_;
  const std::string lock_path_;
  const bool herd_;
  Stage stage_ = Stage::unready;
  std::uint64_t round_ = 0;  // answers to questions of an earlier one are of no interest
  QueueWalk walk_;
  QueuePlace place_;
  bool before_there_ = false;
  bool list_watched_ = false;  // the list that is asked for
  bool changed_meanwhile_ = false;
  Backoff backoff_{std::chrono::seconds(2)};
  Timer timer_;
  std::unique_ptr<Watches::Interest> watch_;
  Lifetime lifetime_;
};

}  // namespace dlock::zookeeper
