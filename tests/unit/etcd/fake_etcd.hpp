// An etcd cluster in memory, behind the connections of clients: as much of it as dlock asks for, and what goes wrong.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/etcd/connection/member.hpp"
#include "backends/etcd/wire/messages.hpp"

namespace dlock::etcd {

class FakeEtcd {
 public:
  enum class Fate {
    answered,
    carried_out,  // and the answer is lost
    lost,         // and so is the answer
    late,         // carried out after delay(), and answered; without that by deliver_late(), and the answer is lost
    held,         // carried out, and answered by answer_held()
    held_before,  // carried out and answered by answer_held()
  };

  // The cluster's executor, for its clock and timers. Clients are called in tasks of their own.
  explicit FakeEtcd(Executor& executor) : executor_(executor) {}

  // The connections of a process.
  [[nodiscard]] MemberFactory members(int process = 0);

  // The method of a call, and whose it is.
  struct Call : std::string_view {
    int process = 0;
  };

  // --- What goes wrong ---
  bool refuses = false;                                    // connections
  std::set<int> unreachable;                               // those of these processes
  bool silent = false;                                     // nothing is answered
  std::function<Fate(Call)> fate;                          // of each call but streams, and keep-alives of process 0
  std::function<GrpcStatus(Call)> status;                  // instead of an answer, where the code is not 0; asked first
  std::function<std::chrono::nanoseconds()> latency;       // of answers
  std::function<std::chrono::nanoseconds()> delay;         // of what is late
  std::function<std::chrono::nanoseconds()> news_delay;    // of watches; they stay in order
  std::function<Failure(const common::Host&)> refuses_at;  // a connection, where there is a code
  // Ends a stream when something is said in it.
  std::function<std::optional<GrpcStatus>(std::string_view method)> end_of_stream;
  std::function<std::int64_t(std::int64_t id)> refuses_watch;  // and says that it is that one
  bool holds_keep_alives = false;                              // their answers, until answer_held()
  bool holds_news = false;                                     // of watches, the same
  std::optional<std::string> answer_to_keep_alives;            // instead of the right one
  std::int64_t lag = 0;  // so many revisions are told to watches that begin as if they were to come
  std::uint64_t term = 7;
  std::optional<std::uint64_t> term_of_keep_alives;  // of a leader that was deposed, whose keep-alives keep nothing
  std::uint64_t cluster = 1;
  std::size_t most_calls = 100;  // at a time, on each connection
  // The next calls of this method.
  void refuse_next(std::string_view method, const GrpcStatus& answer, int times = 1) {
    status = [=](std::string_view call) mutable { return call == method && times-- > 0 ? answer : GrpcStatus{}; };
  }
  void treat_next(std::string_view method, Fate become, int times = 1) {
    fate = [=](std::string_view call) mutable { return call == method && times-- > 0 ? become : Fate::answered; };
  }
  void break_connections(const Failure& why = {errc::unavailable, "etcd:2379: Connection reset by peer"},
                         bool orderly = false);
  // The same as proxies end idle ones.
  void close_connections() {
    break_connections({errc::unavailable, "etcd:2379: the server closed the connection"}, true);
  }
  // The connections of a process break; or no request on them is carried out any more; or on no later one, either, and
  // the process gets no more answers.
  void cut(int process);
  void silence(int process);
  void bury(int process);
  // The connections that there are take no more calls.
  void leave();
  void deliver_late();
  // The oldest of those that are held.
  void answer_held(std::size_t most = 1000);
  // A lease is over, and its keys gone; or all.
  void end_lease(std::int64_t lease);
  void expire_leases();
  bool leases_end = false;  // by themselves, if they are not kept alive for long enough
  // There is another leader: leases begin anew.
  void elect();
  void remove(const std::string& key);
  // From a snapshot of that revision.
  void restore(std::int64_t revision) { revision_ = revision; }
  // The watches had not been told everything by then.
  void compact();

  // --- What it has ---
  std::map<std::string, KeyValue> keys;
  [[nodiscard]] std::vector<std::string> keys_below(const std::string& prefix) const;
  std::map<std::int64_t, std::int64_t> leases;  // with their times
  std::map<std::int64_t, int> processes;        // that all leases ever were granted to
  int dialled = 0;
  int keep_alives = 0;
  int grants = 0;  // of leases
  int transactions = 0;
  int values = 0;                  // that were read
  std::vector<std::string> users;  // that logged in
  [[nodiscard]] std::size_t watches() const;
  [[nodiscard]] std::size_t watches_of_ranges() const;
  std::set<std::string> metadata;  // names, of any call
  std::vector<Grpc::Metadata> stream_metadata;

 private:
  class FakeMember;
  struct Watch {
    FakeMember* member;
    CallId call;
    std::int64_t id;
    KeyRange range;
    bool puts;
  };

  void keep_lease(std::int64_t lease);
  void put(const std::string& key, const std::string& value, std::int64_t lease);
  std::int64_t remove_range(const KeyRange& range);
  [[nodiscard]] std::string header() const { return header(revision_); }
  [[nodiscard]] std::string header(std::int64_t revision) const;
  [[nodiscard]] std::string carry_out(Call call, std::string_view request);
  [[nodiscard]] std::string keep_alive(std::int64_t lease);
  [[nodiscard]] bool reaches(FakeMember& member) const;
  [[nodiscard]] std::vector<FakeMember*> members_of(int process) const;
  [[nodiscard]] bool holds(std::string_view condition) const;
  [[nodiscard]] bool all_hold(std::string_view request) const;
  [[nodiscard]] std::string transaction(std::string_view request, bool held, bool whole);
  // etcd checks these before it carries out any of them.
  struct Writes {
    std::vector<std::string> puts;
    std::vector<KeyRange> removals;
    bool lease_is_gone = false;
    bool key_is_missing = false;
  };
  void look_at(std::string_view request, bool carried_out, Writes& writes) const;
  [[nodiscard]] GrpcStatus problem_with(std::string_view request) const;
  [[nodiscard]] std::string range(std::string_view request);
  void begin_watch(FakeMember& member, CallId call, std::string_view request);
  void tell(const std::string& key, bool put);
  struct Event {
    std::int64_t revision;
    std::string key;
    bool put;
  };
  void tell(const Watch& watch, const Event& event);

  Executor& executor_;
  std::int64_t revision_ = 1;
  bool changed_ = false;                    // by this transaction
  std::map<std::int64_t, TimePoint> kept_;  // leases
  std::vector<FakeMember*> connected_;
  std::set<int> dead_;  // processes
  std::vector<Watch> watches_;
  std::vector<Event> history_;
  std::vector<std::function<void()>> late_;
  std::vector<std::function<void()>> held_;
  GrpcStatus refusal_;
  Lifetime lifetime_;
};

}  // namespace dlock::etcd
