#include "fake_etcd.hpp"

#include <algorithm>
#include <iterator>

#include "backends/etcd/wire/protobuf.hpp"

namespace dlock::etcd {

namespace {

constexpr int invalid_argument = 3;
constexpr int not_found = 5;
constexpr std::int64_t compared_creation = 1;  // of Compare's targets the only one that dlock names

bool is_in(const KeyRange& range, const std::string& key) {
  if (range.end.empty()) return key == range.key;
  return key >= range.key && (range.end == std::string(1, '\0') || key < range.end);
}

std::vector<std::string_view> all_of(std::string_view message, std::uint32_t field) {
  std::vector<std::string_view> found;
  MessageReader reader(message);
  while (reader.next()) {
    if (reader.field() == field) found.push_back(reader.bytes());
  }
  return found;
}

std::string text_of(std::string_view message, std::uint32_t field) {
  const auto all = all_of(message, field);
  return std::string(all.empty() ? std::string_view() : all.front());
}

std::int64_t number_of(std::string_view message, std::uint32_t field) {
  MessageReader reader(message);
  while (reader.next()) {
    if (reader.field() == field) return reader.signed_number();
  }
  return 0;
}

KeyRange range_in(std::string_view request, std::uint32_t key_field = 1, std::uint32_t end_field = 2) {
  return {text_of(request, key_field), text_of(request, end_field)};
}

}  // namespace

// --- Connections -----------------------------------------------------------------------------------------------------

class FakeEtcd::FakeMember final : public Member {
 public:
  FakeMember(FakeEtcd& etcd, Executor& client, int of, common::Host host, Member::Events& events)
      : process(of), etcd_(etcd), client_(client), host_(std::move(host)), events_(events) {}
  ~FakeMember() override { forget(); }

  void open(TimePoint /*deadline*/) override {
    ++etcd_.dialled;
    later([this] {
      if (etcd_.dead_.contains(process)) return;
      if (etcd_.refuses_at) {
        if (Failure why = etcd_.refuses_at(host_); why.code) return events_.member_closed(std::move(why), false);
      }
      const bool refused = etcd_.refuses || etcd_.unreachable.contains(process);
      if (refused) return events_.member_closed({errc::unavailable, "etcd:2379: Connection refused"}, false);
      etcd_.connected_.push_back(this);
      events_.member_opened();
    });
  }
  CallId call(std::string_view method, const Grpc::Metadata& metadata, std::string_view request) override {
    const CallId id = begin(method, metadata);
    if (id != 0) queue([this, id, text = std::string(request)] { unary(id, text); }, id);
    return id;
  }
  CallId open_stream(std::string_view method, const Grpc::Metadata& metadata) override {
    etcd_.stream_metadata.push_back(metadata);
    return begin(method, metadata);
  }
  void send(CallId id, std::string_view message) override {
    queue([this, id, text = std::string(message)] { stream(id, text); }, id);
  }
  std::size_t room() const noexcept override {
    return leaving ? 0 : std::max(most_calls(), methods_.size()) - methods_.size();
  }
  std::size_t most_calls() const noexcept override { return etcd_.most_calls; }
  bool closing() const noexcept override { return leaving; }
  void cancel(CallId call) override { methods_.erase(call); }
  void flush() override {
    for (auto& each : std::exchange(out_, {})) etcd_.executor_.post(lifetime_.guard(std::move(each)));
  }
  void receive() override {}
  void discard() noexcept override {}

  void say_news(CallId call, const std::string& message) {
    const auto tell = lifetime_.guard([this, call, message] { say(call, message); });
    if (etcd_.holds_news) return etcd_.held_.push_back(tell);
    if (!etcd_.news_delay) return tell();
    last_news_ = std::max(last_news_, etcd_.executor_.now() + etcd_.news_delay());
    (void)etcd_.executor_.schedule(last_news_, tell);
  }
  void say(CallId call, const std::string& message) {
    if (silent || !etcd_.reaches(*this)) return;
    later([this, call, message] {
      if (!methods_.contains(call)) return;
      const Lifetime::Watch life = lifetime_.watch();
      events_.member_event({.call = call, .message = message});
      if (!life.over()) drained();
    });
  }
  void leave() {
    leaving = true;
    drained();
  }
  void close(const Failure& why, bool orderly) { events_.member_closed(why, orderly); }
  // The client is told when it has read what was sent before.
  void cut() {
    forget();
    later([this] { close({errc::unavailable, "etcd:2379: Connection reset by peer"}, false); });
  }
  // From now on nothing of this connection reaches the cluster.
  void forget() {
    std::erase(etcd_.connected_, this);
    std::erase_if(etcd_.watches_, [this](const Watch& each) { return each.member == this; });
  }

  bool leaving = false;
  bool silent = false;
  const int process;

 private:
  void later(std::function<void()> f) { client_.post(lifetime_.guard(std::move(f))); }
  CallId begin(std::string_view method, const Grpc::Metadata& metadata) {
    for (const auto& [name, value] : metadata) etcd_.metadata.insert(name);
    if (leaving) return 0;
    last_ += 2;
    methods_[last_] = method;
    return last_;
  }
  void queue(std::function<void()> f, CallId id) {
    out_.push_back([this, id, f = std::move(f)] {
      if (methods_.contains(id) && !etcd_.silent && !silent && etcd_.reaches(*this)) f();
    });
  }

  void unary(CallId id, const std::string& request) {
    const Call call{{methods_.at(id)}, process};
    const bool has_fate = call != method_lease_keep_alive || process != 0;
    const GrpcStatus status = has_fate && etcd_.status ? etcd_.status(call) : GrpcStatus{};
    Fate fate = !has_fate && etcd_.holds_keep_alives ? Fate::held : Fate::answered;
    if (has_fate && etcd_.fate) fate = etcd_.fate(call);
    const auto carry_out = [&etcd = etcd_, call, request] {
      std::string answer = etcd.carry_out(call, request);
      return std::pair(std::move(answer), std::exchange(etcd.refusal_, {}));
    };
    const auto answer = [self = lifetime_.watch(), this, id, carry_out] {
      const auto [text, refusal] = carry_out();
      if (!self.over()) end(id, text, refusal);
    };
    if (fate == Fate::lost) return;
    if (fate == Fate::late && !etcd_.delay) return etcd_.late_.push_back([carry_out] { (void)carry_out(); });
    if (fate == Fate::held_before) return etcd_.held_.push_back(lifetime_.guard(answer));
    if (fate == Fate::late) {
      (void)etcd_.executor_.schedule(etcd_.executor_.now() + etcd_.delay(), etcd_.lifetime_.guard(answer));
      return;
    }
    const auto [text, refusal] = status.code == 0 ? carry_out() : std::pair(std::string(), status);
    if (fate == Fate::carried_out) return;
    if (fate == Fate::answered) return end(id, text, refusal);
    etcd_.held_.push_back(lifetime_.guard([this, id, text = text, refusal = refusal] { end(id, text, refusal); }));
  }

  void end(CallId call, const std::string& answer, const GrpcStatus& status) {
    if (!etcd_.latency) return give(call, answer, status);
    (void)etcd_.executor_.schedule(etcd_.executor_.now() + etcd_.latency(),
                                   lifetime_.guard([this, call, answer, status] { give(call, answer, status); }));
  }
  void give(CallId call, const std::string& answer, const GrpcStatus& status) {
    if (silent || !etcd_.reaches(*this)) return;
    later([this, call, answer, status] {
      if (methods_.erase(call) == 0) return;
      const Lifetime::Watch life = lifetime_.watch();
      if (!answer.empty()) events_.member_event({.call = call, .message = answer});
      if (!life.over()) events_.member_event({.call = call, .status = status});
      if (!life.over()) drained();
    });
  }
  // Requests that were made meanwhile are sent.
  void drained() {
    const Lifetime::Watch life = lifetime_.watch();
    events_.member_drained();
    if (!life.over()) flush();
  }

  void stream(CallId call, const std::string& request) {
    if (const auto ended = etcd_.end_of_stream ? etcd_.end_of_stream(methods_.at(call)) : std::nullopt) {
      std::erase_if(etcd_.watches_, [&](const Watch& each) { return each.member == this && each.call == call; });
      return end(call, {}, *ended);
    }
    etcd_.begin_watch(*this, call, request);
  }

  FakeEtcd& etcd_;
  Executor& client_;
  const common::Host host_;
  Member::Events& events_;
  CallId last_ = -1;
  std::map<CallId, std::string_view> methods_;
  std::vector<std::function<void()>> out_;  // until it is flushed
  TimePoint last_news_;
  Lifetime lifetime_;
};

MemberFactory FakeEtcd::members(int process) {
  return [this, process](Executor& client, const common::Host& host, Member::Events& events) {
    return std::make_unique<FakeMember>(*this, client, process, host, events);
  };
}

bool FakeEtcd::reaches(FakeMember& member) const {
  return std::ranges::find(connected_, &member) != connected_.end();
}

std::vector<FakeEtcd::FakeMember*> FakeEtcd::members_of(int process) const {
  std::vector<FakeMember*> found;
  std::ranges::copy_if(connected_, std::back_inserter(found), [&](auto each) { return each->process == process; });
  return found;
}

void FakeEtcd::cut(int process) {
  for (FakeMember* const each : members_of(process)) each->cut();
}

void FakeEtcd::silence(int process) {
  for (FakeMember* const each : members_of(process)) each->silent = true;
}

void FakeEtcd::bury(int process) {
  dead_.insert(process);
  for (FakeMember* const each : members_of(process)) each->forget();
}

void FakeEtcd::break_connections(const Failure& why, bool orderly) {
  for (FakeMember* const each : std::vector<FakeMember*>(connected_)) {
    if (reaches(*each)) each->close(why, orderly);
  }
}

void FakeEtcd::leave() {
  for (FakeMember* const each : std::vector<FakeMember*>(connected_)) each->leave();
}

void FakeEtcd::deliver_late() {
  for (const auto& each : std::exchange(late_, {})) each();
}

void FakeEtcd::answer_held(std::size_t most) {
  for (; most > 0 && !held_.empty(); --most) {
    const auto answer = std::move(held_.front());
    held_.erase(held_.begin());
    answer();
  }
}

// --- Data ------------------------------------------------------------------------------------------------------------

std::vector<std::string> FakeEtcd::keys_below(const std::string& prefix) const {
  std::vector<std::string> found;
  for (const auto& [key, value] : keys) {
    if (key.starts_with(prefix) && key.find("/.") == std::string::npos) found.push_back(key);
  }
  return found;
}

void FakeEtcd::put(const std::string& key, const std::string& value, std::int64_t lease) {
  if (!std::exchange(changed_, true)) ++revision_;
  const auto before = keys.find(key);
  const std::int64_t created = before == keys.end() ? revision_ : before->second.created;
  keys[key] = {.key = key, .value = value, .created = created, .lease = lease};
  tell(key, true);
}

std::int64_t FakeEtcd::remove_range(const KeyRange& range) {
  std::vector<std::string> gone;
  for (const auto& [key, value] : keys) {
    if (is_in(range, key)) gone.push_back(key);
  }
  if (!gone.empty() && !std::exchange(changed_, true)) ++revision_;
  for (const std::string& key : gone) {
    keys.erase(key);
    tell(key, false);
  }
  return static_cast<std::int64_t>(gone.size());
}

void FakeEtcd::remove(const std::string& key) {
  changed_ = false;
  (void)remove_range({key});
}

void FakeEtcd::end_lease(std::int64_t lease) {
  leases.erase(lease);
  changed_ = false;
  for (const auto& [key, value] : std::map<std::string, KeyValue>(keys)) {
    if (value.lease != lease) continue;
    (void)remove_range({key});
  }
}

void FakeEtcd::expire_leases() {
  for (const auto& [lease, ttl] : std::map<std::int64_t, std::int64_t>(leases)) end_lease(lease);
}

void FakeEtcd::keep_lease(std::int64_t lease) {
  kept_[lease] = executor_.now();
  if (!leases_end) return;
  const auto time = std::chrono::seconds(leases[lease]);
  (void)executor_.schedule(executor_.now() + time, lifetime_.guard([this, lease, time] {
    if (leases.contains(lease) && executor_.now() >= kept_[lease] + time) end_lease(lease);
  }));
}

void FakeEtcd::elect() {
  ++term;
  for (const auto& [lease, ttl] : leases) keep_lease(lease);
}

// --- Calls -----------------------------------------------------------------------------------------------------------

std::string FakeEtcd::header(std::int64_t revision) const {
  return MessageWriter().number(1, cluster).number(3, revision).number(4, term).take();
}

std::string FakeEtcd::keep_alive(std::int64_t lease) {
  ++keep_alives;
  if (answer_to_keep_alives) return *answer_to_keep_alives;
  const auto found = leases.find(lease);
  if (found != leases.end() && !term_of_keep_alives) keep_lease(lease);
  MessageWriter with_term;
  with_term.number(1, cluster).number(3, revision_).number(4, term_of_keep_alives.value_or(term));
  return MessageWriter()
      .message(1, with_term.take())
      .number(2, lease)
      .number(3, found == leases.end() ? std::int64_t{0} : found->second)
      .take();
}

std::string FakeEtcd::carry_out(Call method, std::string_view request) {
  if (method == method_transaction) {
    ++transactions;
    changed_ = false;
    refusal_ = problem_with(request);
    return refusal_.code == 0 ? transaction(request, all_hold(request), true) : std::string();
  }
  if (method == method_authenticate) {
    users.push_back(text_of(request, 1));
    return MessageWriter().message(1, header()).bytes(2, "token").take();
  }
  const std::int64_t lease = number_of(request, method == method_lease_grant ? 2 : 1);
  if (method == method_lease_grant) {
    ++grants;
    leases[lease] = number_of(request, 1);
    processes[lease] = method.process;
    keep_lease(lease);
    return MessageWriter().message(1, header()).number(2, lease).number(3, leases[lease]).take();
  }
  if (method == method_lease_keep_alive) return keep_alive(lease);
  if (method == method_lease_revoke) {
    end_lease(lease);
    return MessageWriter().message(1, header()).take();
  }
  if (method == method_status) {
    return MessageWriter().message(1, header()).bytes(2, "3.5.30").number(4, std::uint64_t{1}).take();
  }
  return MessageWriter().message(1, header()).take();
}

bool FakeEtcd::holds(std::string_view condition) const {
  if (number_of(condition, 2) != compared_creation) return false;
  const KeyRange range = range_in(condition, 3, 64);
  const std::int64_t created = number_of(condition, 5);
  bool empty = true;
  for (const auto& [key, value] : keys) {
    if (!is_in(range, key)) continue;
    if (value.created != created) return false;
    empty = false;
  }
  return !empty || created == 0;
}

std::string FakeEtcd::range(std::string_view request) {
  const KeyRange wanted = range_in(request);
  const auto limit = static_cast<std::size_t>(number_of(request, 3));
  const std::int64_t order = number_of(request, 5);
  const bool keys_only = number_of(request, 8) != 0;
  const std::int64_t most = number_of(request, 13);
  std::vector<KeyValue> found;
  std::int64_t count = 0;
  for (const auto& [key, value] : keys) {
    if (!is_in(wanted, key)) continue;
    ++count;
    if (most == 0 || value.created <= most) found.push_back(value);
  }
  if (order != 0) std::ranges::sort(found, {}, &KeyValue::created);
  if (order == 2) std::ranges::reverse(found);
  if (!keys_only) values += static_cast<int>(found.size());
  MessageWriter answer;
  answer.message(1, header());
  for (std::size_t i = 0; i < found.size() && (limit == 0 || i < limit); ++i) {
    answer.message(2, MessageWriter()
                          .bytes(1, found[i].key)
                          .number(2, found[i].created)
                          .bytes(5, keys_only ? std::string() : found[i].value)
                          .number(6, found[i].lease)
                          .take());
  }
  return answer.flag(3, limit != 0 && found.size() > limit).number(4, count).take();
}

void FakeEtcd::look_at(std::string_view request, bool carried_out, Writes& writes) const {
  const bool held = all_hold(request);
  for (const std::string_view step : all_of(request, 2)) {
    MessageReader reader(step);
    if (!reader.next()) continue;
    const std::string_view body = reader.bytes();
    if (reader.field() != 4 && text_of(body, 1).empty()) writes.key_is_missing = true;
    if (reader.field() == 2) {
      writes.puts.push_back(text_of(body, 1));
      const std::int64_t lease = number_of(body, 3);
      if (carried_out && held && lease != 0 && !leases.contains(lease)) writes.lease_is_gone = true;
    } else if (reader.field() == 3) {
      writes.removals.push_back(range_in(body));
    } else if (reader.field() == 4) {
      look_at(body, carried_out && held, writes);
    }
  }
}

GrpcStatus FakeEtcd::problem_with(std::string_view request) const {
  Writes writes;
  look_at(request, true, writes);
  std::ranges::sort(writes.puts);
  if (writes.key_is_missing) return {.code = invalid_argument, .message = "etcdserver: key is not provided"};
  const bool twice = std::ranges::adjacent_find(writes.puts) != writes.puts.end();
  const bool both = std::ranges::any_of(writes.puts, [&writes](const std::string& put) {
    return std::ranges::any_of(writes.removals, [&put](const KeyRange& each) { return is_in(each, put); });
  });
  if (twice || both) {
    return {.code = invalid_argument, .message = "etcdserver: duplicate key given in txn request"};
  }
  if (writes.lease_is_gone) return {.code = not_found, .message = "etcdserver: requested lease not found"};
  return {};
}

bool FakeEtcd::all_hold(std::string_view request) const {
  const auto conditions = all_of(request, 1);
  return std::all_of(conditions.begin(), conditions.end(), [this](auto each) { return holds(each); });
}

std::string FakeEtcd::transaction(std::string_view request, bool held, bool whole) {
  MessageWriter answer;
  std::string steps;
  const auto to_do = all_of(request, held ? 2 : 3);
  // Conditions of transactions in it are looked at before anything is done.
  std::deque<bool> inner_held;
  for (const std::string_view step : to_do) {
    MessageReader reader(step);
    if (reader.next() && reader.field() == 4) inner_held.push_back(all_hold(reader.bytes()));
  }
  for (const std::string_view step : to_do) {
    MessageReader reader(step);
    if (!reader.next()) continue;
    const std::string_view body = reader.bytes();
    MessageWriter done;
    switch (reader.field()) {
      case 1:
        done.message(1, range(body));
        break;
      case 2:
        put(text_of(body, 1), text_of(body, 2), number_of(body, 3));
        done.message(2, {});
        break;
      case 3:
        done.message(3, MessageWriter().number(2, remove_range(range_in(body))).take());
        break;
      default:
        done.message(4, transaction(body, inner_held.front(), false));
        inner_held.pop_front();
        break;
    }
    steps += MessageWriter().message(3, done.take()).take();
  }
  if (whole) answer.message(1, header());
  return answer.flag(2, held).take() + steps;
}

// --- Watches ---------------------------------------------------------------------------------------------------------

void FakeEtcd::begin_watch(FakeMember& member, CallId call, std::string_view request) {
  if (const auto canceled = all_of(request, 2); !canceled.empty()) {
    const std::int64_t id = number_of(canceled.front(), 1);
    std::erase_if(watches_, [&](const Watch& each) { return each.member == &member && each.id == id; });
    return;
  }
  const std::string_view wanted = all_of(request, 1).front();
  const Watch watch{&member, call, number_of(wanted, 7), range_in(wanted), all_of(wanted, 5).empty()};
  if (refuses_watch) {
    const std::int64_t id = refuses_watch(watch.id);
    return member.say_news(call, MessageWriter().message(1, header()).number(2, id).flag(3, true).flag(4, true).take());
  }
  const std::int64_t seen = std::max<std::int64_t>(1, revision_ - lag);
  member.say_news(call, MessageWriter().message(1, header(seen)).number(2, watch.id).flag(3, true).take());
  for (const Event& each : history_) {
    if (each.revision > seen) tell(watch, each);
  }
  watches_.push_back(watch);
}

void FakeEtcd::compact() {
  for (const Watch& each : std::exchange(watches_, {})) {
    each.member->say_news(
        each.call, MessageWriter().message(1, header()).number(2, each.id).flag(4, true).number(5, revision_).take());
  }
}

void FakeEtcd::tell(const std::string& key, bool put) {
  history_.push_back({revision_, key, put});
  for (const Watch& each : watches_) tell(each, history_.back());
}

void FakeEtcd::tell(const Watch& watch, const Event& event) {
  if (!is_in(watch.range, event.key) || (event.put && !watch.puts)) return;
  watch.member->say_news(watch.call,
                         MessageWriter().message(1, header(event.revision)).number(2, watch.id).message(11, "").take());
}

std::size_t FakeEtcd::watches() const {
  return watches_.size();
}

std::size_t FakeEtcd::watches_of_ranges() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(watches_, [](const Watch& each) { return !each.range.end.empty(); }));
}

}  // namespace dlock::etcd
