#include "fake_handle.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>

#include "backends/zookeeper/connection/errors.hpp"

namespace dlock::zookeeper {
namespace {

constexpr int requires_auth = -124;

// The library's code where it means one thing only.
int code_of(Problem problem) {
  static const std::map<Problem, int> codes{{Problem::none, 0},
                                            {Problem::no_node, -101},
                                            {Problem::node_exists, -110},
                                            {Problem::unknown_outcome, -4},
                                            {Problem::session_over, -112},
                                            {Problem::not_executed, -127},
                                            {Problem::no_rights, -102},
                                            {Problem::other, -111}};
  return codes.at(problem);
}

// As a server makes it, overflow included: a signed number of 32 bits.
std::string with_sequence(const std::string& path, std::int64_t sequence) {
  std::array<char, 16> digits{};
  (void)std::snprintf(digits.data(), digits.size(), "%010d", static_cast<std::int32_t>(sequence));
  return path + digits.data();
}

bool is_below(const std::string& path, const std::string& parent) {
  return path.size() > parent.size() + 1 && path.starts_with(parent) && path[parent.size()] == '/';
}

}  // namespace

class FakeHandle final : public Handle {
 public:
  FakeHandle(FakeEnsemble& ensemble, Executor& client, int process, const Options& options, Listener& listener);
  ~FakeHandle() override;

  void create(const std::string& path, const std::string& data, NodeKind kind, Handler<Created> done) override {
    const FakeRequest request{
        .kind = FakeRequest::Kind::create, .path = path, .data = data, .node = kind, .session = session_};
    submit_for<Created>(
        request, [this, request](Created& created) { return ensemble_.create(request, created); }, std::move(done));
  }
  void get(const std::string& path, WatchId watch, Handler<Node> done) override {
    submit_for<Node>(
        {.kind = FakeRequest::Kind::get, .path = path, .watch = watch},
        [this, path, watch](Node& node) {
          if (!ensemble_.exists(path)) return Problem::no_node;
          node = {ensemble_.data(path), ensemble_.stat(path)};
          FakeEnsemble::watch(ensemble_.data_watches_[path], {this, watch});
          return Problem::none;
        },
        std::move(done));
  }
  void exists(const std::string& path, WatchId watch, Handler<Stat> done) override {
    submit_for<Stat>(
        {.kind = FakeRequest::Kind::exists, .path = path, .watch = watch},
        [this, path, watch](Stat& stat) {
          FakeEnsemble::watch(ensemble_.data_watches_[path], {this, watch});
          if (!ensemble_.exists(path)) return Problem::no_node;
          stat = ensemble_.stat(path);
          return Problem::none;
        },
        std::move(done));
  }
  void children(const std::string& path, WatchId watch, Handler<std::vector<std::string>> done) override {
    submit_for<std::vector<std::string>>(
        {.kind = FakeRequest::Kind::children, .path = path, .watch = watch},
        [this, path, watch](std::vector<std::string>& names) {
          if (!ensemble_.exists(path)) return Problem::no_node;
          names = ensemble_.children(path);
          FakeEnsemble::watch(ensemble_.child_watches_[path], {this, watch});
          return Problem::none;
        },
        std::move(done));
  }
  void set(const std::string& path, const std::string& data, DoneHandler done) override {
    submit_write(
        {.kind = FakeRequest::Kind::set, .path = path, .data = data},
        [this, path, data] {
          if (!ensemble_.exists(path)) return Problem::no_node;
          ensemble_.set_data(path, data);
          return Problem::none;
        },
        std::move(done));
  }
  void remove(const std::string& path, DoneHandler done) override { remove_if(path, true, std::move(done)); }
  void remove_childless(const std::string& path, DoneHandler done) override { remove_if(path, false, std::move(done)); }
  void sync(const std::string& path, DoneHandler done) override {
    submit_write(
        {.kind = FakeRequest::Kind::sync, .path = path}, [] { return Problem::none; }, std::move(done));
  }
  [[nodiscard]] std::int64_t session_id() const noexcept override { return session_; }
  [[nodiscard]] std::chrono::milliseconds session_timeout() const noexcept override { return timeout_; }
  [[nodiscard]] bool waits_for_server() const noexcept override { return waits_; }
  void close(std::function<void()> done) override {
    ++ensemble_.closed;
    listener_ = nullptr;
    shut_out_ = false;
    const bool was_connected = std::exchange(connected_, false) && !silent_;
    over_ = true;
    silence_timer_.disarm();
    fail_pending(Problem::session_over);
    ensemble_.forget(*this);
    if (was_connected) ensemble_.end_session(session_);
    post(std::move(done));
  }

 private:
  friend class FakeEnsemble;
  struct Answer {
    std::function<void(Problem)> give;
    Problem problem;
    bool held;
    std::function<Problem()> unsent = nullptr;  // or not carried out yet
  };

  // Decides what becomes of the request; `carry_out` answers its problem.
  void submit(FakeRequest request, const std::function<Problem()>& carry_out, std::function<void(Problem)> give) {
    request.session = session_;
    request.process = process_;
    ensemble_.requests.push_back(request);
    Answer answer{.give = std::move(give), .problem = Problem::none, .held = false};
    if (over_) {
      answer.problem = Problem::session_over;
    } else if (!connected_ && ensemble_.keeps_unsent) {
      answer.held = true;
      answer.unsent = carry_out;
    } else if (!connected_) {
      answer.problem = Problem::unknown_outcome;
    } else if (ensemble_.dialling == FakeEnsemble::Dialling::require_auth) {
      shut_out_ = true;
      answer.problem = Problem::session_over;
    } else {
      const auto decide = ensemble_.fate;  // which may replace itself
      const Fate fate = decide ? decide(request) : Fate::answer;
      const auto arrive = [this, fate, carry_out] {
        if (fate == Fate::refuse) return Problem::not_executed;
        if (fate == Fate::forbid) return Problem::no_rights;
        if (fate == Fate::lose_request) return Problem::unknown_outcome;
        if (!ensemble_.lives(session_)) return Problem::session_over;
        ensemble_.keep(session_, ensemble_.untold_part);
        const Problem problem = carry_out();  // what this makes fire comes first
        return fate == Fate::lose_answer ? Problem::unknown_outcome : problem;
      };
      if (fate == Fate::silence) be_silent();
      const bool in_turn = std::ranges::none_of(pending_, [](const Answer& each) { return each.unsent != nullptr; });
      answer.held = silent_ || !in_turn || fate == Fate::late || fate == Fate::hold_answer;
      if (silent_) {
        // It is answered when the client library leaves the server.
      } else if (fate == Fate::late || !in_turn) {
        answer.unsent = arrive;
        if (!late_timer_.armed()) {
          late_timer_.arm(ensemble_.executor_.now() + ensemble_.delay(), [this] {
            carry_out_late();
            if (connected_ && !silent_) carry_out_unsent();
          });
        }
      } else {
        answer.problem = arrive();
      }
    }
    pending_.push_back(std::move(answer));
    deliver_soon();
    if (shut_out_) post([this] { ensemble_.disconnect(session_); });
  }
  template <class T>
  void submit_for(const FakeRequest& request, std::function<Problem(T&)> carry_out, Handler<T> done) {
    const auto value = std::make_shared<T>();
    submit(
        request, [value, carry_out = std::move(carry_out)] { return carry_out(*value); },
        [this, value, sent = client_.now(), done = std::move(done)](Problem problem) {
          done(outcome(problem, sent), problem == Problem::none ? *value : T());
        });
  }
  void submit_write(const FakeRequest& request, const std::function<Problem()>& carry_out, DoneHandler done) {
    submit(request, carry_out,
           [this, sent = client_.now(), done = std::move(done)](Problem problem) { done(outcome(problem, sent)); });
  }
  void remove_if(const std::string& path, bool ephemeral_too, DoneHandler done) {
    submit_write(
        {.kind = FakeRequest::Kind::remove, .path = path},
        [this, path, ephemeral_too] {
          if (!ephemeral_too && ensemble_.exists(path) && ensemble_.stat(path).owner != 0) return Problem::other;
          const std::string parent = FakeEnsemble::parent_of(path);
          if (ensemble_.exists(parent) && ensemble_.closed_nodes.contains(parent)) return Problem::no_rights;
          return ensemble_.remove_node(path);
        },
        std::move(done));
  }
  void deliver() {
    if (pending_.empty() || pending_.front().held) return;
    const Answer answer = std::move(pending_.front());
    pending_.pop_front();
    answer.give(answer.problem);  // may be the end of this handle
  }
  void deliver_soon() {
    if (!ensemble_.latency) return post([this] { deliver(); });
    last_delivery_ = std::max(last_delivery_, ensemble_.executor_.now() + ensemble_.latency());
    (void)ensemble_.executor_.schedule(last_delivery_, lifetime_.guard([this] { post([this] { deliver(); }); }));
  }
  void fail_pending(Problem problem) {
    for (Answer& answer : pending_) {
      answer.problem = problem;
      answer.held = false;
      answer.unsent = nullptr;
      post([this] { deliver(); });
    }
  }
  // As the client library does when it finds that the connection broke.
  void break_connection() {
    connected_ = false;
    silence_timer_.disarm();
    silent_ = false;
    tell(Event::disconnected, {errc::unavailable, "fake: disconnected"});
    for (const Answer& answer : pending_) {
      if (answer.unsent) late_.push_back(answer.unsent);
    }
    fail_pending(Problem::unknown_outcome);
    post([this] { connect_later(); });
  }
  void connect_later() {
    if (!ensemble_.connects_after) return;
    connect_timer_.arm(client_.now() + *ensemble_.connects_after, [this] {
      if (!connected_) connect();
    });
  }
  // The client library leaves a server that does not answer for two thirds of the timeout.
  void be_silent() {
    silent_ = true;
    silence_timer_.arm(client_.now() + timeout_ * 2 / 3, [this] { break_connection(); });
  }
  void carry_out_late() {
    for (const auto& each : std::exchange(late_, {})) (void)each();
  }
  void carry_out_unsent() {
    const auto first = std::ranges::find_if(pending_, [](const Answer& each) { return each.unsent != nullptr; });
    std::vector<Answer> unsent(std::make_move_iterator(first), std::make_move_iterator(pending_.end()));
    pending_.erase(first, pending_.end());
    for (Answer& answer : unsent) {
      answer.problem = std::exchange(answer.unsent, nullptr)();  // what this makes fire comes first
      answer.held = false;
      pending_.push_back(std::move(answer));
      deliver_soon();
    }
  }
  void post(std::function<void()> task) { client_.post(lifetime_.guard(std::move(task))); }
  void tell(Event event, Failure why) {
    post([this, event, why = std::move(why)] {
      if (listener_ != nullptr) listener_->session_event(event, why);
    });
  }
  [[nodiscard]] bool is_answered() const {
    return ensemble_.dialling != FakeEnsemble::Dialling::silence && !ensemble_.silent.contains(host_) &&
           client_.now() >= answered_from_;
  }
  void connect() {
    using Dialling = FakeEnsemble::Dialling;
    if (over_ || ensemble_.dead_.contains(process_)) return;
    const bool refused = ensemble_.dialling == Dialling::refuse || ensemble_.unreachable.contains(process_);
    if (refused) return connect_later();
    waits_ = !is_answered();
    if (waits_) return;
    if (ensemble_.dialling == Dialling::fail) {
      over_ = true;
      return tell(Event::failed, {errc::unavailable, "fake: no host has an address"});
    }
    if (session_ == 0) {
      session_ = ++ensemble_.last_session_;
      ensemble_.open_session(session_, {.process = process_, .timeout = ensemble_.granted.value_or(asked_)});
    } else if (!ensemble_.lives(session_)) {
      over_ = true;
      return tell(Event::expired, {errc::unavailable, "fake: session expired"});
    }
    connected_ = true;
    shut_out_ = false;
    timeout_ = ensemble_.granted.value_or(asked_);
    ensemble_.keep(session_, 0);
    // If this is the same server as before, it carries out first what it had; a different one drops that.
    if (!late_.empty() && client_.random() % 2 == 0) late_.clear();
    carry_out_late();
    tell(Event::connected, {});
    if (ensemble_.dialling == Dialling::refuse_auth) {
      // As the real one, which learns of it when it has sent them.
      over_ = true;
      return tell(Event::auth_failed, {errc::access_denied, "fake: authentication failed"});
    }
    for (const WatchId id : std::exchange(missed_, {})) fired(id);
    carry_out_unsent();
  }
  // Behind the answers that are on their way, as on the wire.
  void fired(WatchId id) {
    if (over_) return;
    if (!connected_ || silent_) return missed_.push_back(id);
    const auto give = [this, id](Problem problem) {
      if (problem == Problem::none && listener_ != nullptr) return listener_->watch_fired(id);
      missed_.push_back(id);
    };
    // A request that is carried out later already sees what has fired.
    const auto at = std::ranges::find_if(pending_, [](const Answer& each) { return each.unsent != nullptr; });
    pending_.insert(at, {.give = give, .problem = Problem::none, .held = false});
    deliver_soon();
  }
  [[nodiscard]] Outcome outcome(Problem problem, TimePoint sent) const {
    const int code = shut_out_ && problem == Problem::session_over ? requires_auth : code_of(problem);
    return {.problem = problem, .failure = failure_of(code, "fake"), .sent = sent};
  }

  FakeEnsemble& ensemble_;
  Executor& client_;
  const int process_;
  const std::chrono::milliseconds asked_;
  const std::string host_;
  const TimePoint answered_from_;
  Timer answer_timer_;
  Timer connect_timer_;
  Timer silence_timer_;
  Timer late_timer_;
  Listener* listener_;
  std::int64_t session_ = 0;
  std::chrono::milliseconds timeout_{};
  bool waits_ = false;  // for a server that does not answer
  bool connected_ = false;
  bool silent_ = false;  // the connection
  bool over_ = false;    // expired, failed or closed
  bool shut_out_ = false;
  TimePoint last_delivery_;
  std::deque<Answer> pending_;
  std::vector<std::function<Problem()>> late_;  // sent over a connection that has broken
  std::vector<WatchId> missed_;                 // fired while not connected
  Lifetime lifetime_;
};

// --- The tree --------------------------------------------------------------------------------------------------------

HandleFactory FakeEnsemble::handles(int process) {
  return
      [this, process](Executor& client, const Options& options, Handle::Listener& listener) -> std::unique_ptr<Handle> {
        return std::make_unique<FakeHandle>(*this, client, process, options, listener);
      };
}

std::string FakeEnsemble::parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::vector<std::string> FakeEnsemble::children(const std::string& path) const {
  std::vector<std::string> names;
  for (const auto& [other, node] : nodes_) {
    if (other != "/" && parent_of(other) == path) names.push_back(other.substr(other.rfind('/') + 1));
  }
  return names;
}

Stat FakeEnsemble::stat(const std::string& path) const {
  Stat stat = nodes_.at(path).stat;
  stat.children = static_cast<std::int32_t>(children(path).size());
  return stat;
}

std::string FakeEnsemble::add(const std::string& path, const std::string& data, std::int64_t owner, bool sequential) {
  const std::string parent = parent_of(path);
  std::int64_t& next = nodes_.at(parent).next_sequence;
  const std::string name = sequential ? with_sequence(path, next) : path;
  if (next < INT32_MAX) ++next;
  nodes_[name] = {.data = data, .stat = {.created = ++last_zxid_, .owner = owner, .children = 0}};
  fire(data_watches_, name);
  fire(child_watches_, parent);
  return name;
}

Problem FakeEnsemble::create(const FakeRequest& request, Handle::Created& created) {
  const auto parent = nodes_.find(parent_of(request.path));
  if (parent == nodes_.end()) return Problem::no_node;
  if (closed_nodes.contains(parent->first)) return Problem::no_rights;
  if (parent->second.stat.owner != 0) return Problem::other;
  const bool sequential = request.node == NodeKind::ephemeral_sequential;
  const std::string name = sequential ? with_sequence(request.path, parent->second.next_sequence) : request.path;
  if (exists(name)) return Problem::node_exists;
  const std::int64_t owner = request.node == NodeKind::ephemeral || sequential ? request.session : 0;
  created.path = add(request.path, request.data, owner, sequential);
  created.stat = stat(created.path);
  return Problem::none;
}

Problem FakeEnsemble::remove_node(const std::string& path) {
  if (!exists(path)) return Problem::no_node;
  if (!children(path).empty()) return Problem::other;
  nodes_.erase(path);
  ++last_zxid_;
  fire(data_watches_, path);
  fire(child_watches_, path);
  fire(child_watches_, parent_of(path));
  return Problem::none;
}

Handle::Created FakeEnsemble::put(const std::string& path, const std::string& data, std::int64_t owner,
                                  bool sequential) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    const std::string parent = path.substr(0, at);
    if (!exists(parent)) (void)add(parent, {}, 0, false);
  }
  const std::string name = add(path, data, owner, sequential);
  return {name, stat(name)};
}

void FakeEnsemble::remove(const std::string& path) {
  std::vector<std::string> doomed;
  for (const auto& [other, node] : nodes_) {
    if (other == path || is_below(other, path)) doomed.push_back(other);
  }
  // Children come behind their parents.
  std::for_each(doomed.rbegin(), doomed.rend(), [&](const std::string& each) { (void)remove_node(each); });
}

void FakeEnsemble::set_data(const std::string& path, const std::string& data) {
  nodes_.at(path).data = data;
  ++last_zxid_;
  fire(data_watches_, path);
}

// --- Watches and sessions --------------------------------------------------------------------------------------------

void FakeEnsemble::fire(Watchers& watchers, const std::string& path) {
  const auto found = watchers.find(path);
  if (found == watchers.end()) return;
  const auto fired = std::move(found->second);
  watchers.erase(found);
  if (loses_events) return;
  for (const Watcher& watcher : fired) watcher.handle->fired(watcher.id);
}

// As in the client library: a watch that is set twice fires once.
void FakeEnsemble::watch(std::vector<Watcher>& watchers, const Watcher& watcher) {
  const auto is_same = [&](const Watcher& each) { return each.handle == watcher.handle && each.id == watcher.id; };
  if (watcher.id != 0 && std::ranges::none_of(watchers, is_same)) watchers.push_back(watcher);
}

std::size_t FakeEnsemble::watches() const {
  std::size_t sum = 0;
  for (const auto* watchers : {&data_watches_, &child_watches_}) {
    for (const auto& [path, list] : *watchers) sum += list.size();
  }
  return sum;
}

void FakeEnsemble::forget(FakeHandle& handle) {
  const auto is_its = [&](const Watcher& watcher) { return watcher.handle == &handle; };
  for (auto* watchers : {&data_watches_, &child_watches_}) {
    for (auto& [path, list] : *watchers) std::erase_if(list, is_its);
  }
  std::erase(handles_, &handle);
}

void FakeEnsemble::end_session(std::int64_t session) {
  if (!lives(session)) return;
  sessions_.at(session).lives = false;
  std::vector<std::string> doomed;
  for (const auto& [path, node] : nodes_) {
    if (node.stat.owner == session) doomed.push_back(path);
  }
  for (const auto& path : doomed) (void)remove_node(path);
}

bool FakeEnsemble::lives(std::int64_t session) const {
  const auto found = sessions_.find(session);
  return found != sessions_.end() && found->second.lives;
}

int FakeEnsemble::process_of(std::int64_t session) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? 0 : found->second.process;
}

std::vector<std::int64_t> FakeEnsemble::sessions_of(int process) const {
  std::vector<std::int64_t> found;
  for (const auto& [session, state] : sessions_) {
    if (state.lives && state.process == process) found.push_back(session);
  }
  return found;
}

void FakeEnsemble::open_session(std::int64_t session, const Session& state) {
  sessions_[session] = state;
  sessions_[session].told = executor_.now();
  if (connects_after) end_in_time(session);
}

void FakeEnsemble::keep(std::int64_t session, double untold) {
  Session& state = sessions_.at(session);
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(state.timeout * untold);
  state.told = std::max(state.told, executor_.now() - since);
}

void FakeEnsemble::end_in_time(std::int64_t session) {
  const TimePoint end = sessions_.at(session).told + sessions_.at(session).timeout;
  (void)executor_.schedule(end, lifetime_.guard([this, session, end] {
    const Session& state = sessions_.at(session);
    if (state.told + state.timeout > end) return end_in_time(session);
    expire(session);
  }));
}

void FakeEnsemble::bury(int process) {
  dead_.insert(process);
  for (FakeHandle* handle : std::vector<FakeHandle*>(handles_)) {
    if (handle->process_ != process) continue;
    handle->connected_ = false;
    handle->over_ = true;
    forget(*handle);
  }
}

std::vector<FakeHandle*> FakeEnsemble::open_handles(std::int64_t session) const {
  std::vector<FakeHandle*> found;
  for (FakeHandle* handle : handles_) {
    if (!handle->over_ && (session == 0 || handle->session_ == session)) found.push_back(handle);
  }
  return found;
}

void FakeEnsemble::release_answers() {
  for (FakeHandle* handle : handles_) {
    for (auto& answer : handle->pending_) {
      if (answer.unsent || handle->silent_) continue;
      answer.held = false;
      handle->deliver_soon();
    }
  }
}

void FakeEnsemble::disconnect(std::int64_t session) {
  for (FakeHandle* handle : open_handles(session)) {
    if (handle->connected_) handle->break_connection();
  }
}

void FakeEnsemble::reconnect(std::int64_t session) {
  for (FakeHandle* handle : open_handles(session)) {
    if (!handle->connected_) handle->connect();
  }
}

void FakeEnsemble::expire(std::int64_t session) {
  for (FakeHandle* handle : open_handles(session)) {
    end_session(handle->session_);
    if (handle->silent_ || !std::exchange(handle->connected_, false)) continue;
    handle->over_ = true;
    handle->fail_pending(Problem::session_over);
    handle->tell(Handle::Event::expired, {errc::unavailable, "fake: session expired"});
  }
  if (session != 0) end_session(session);  // of nobody who is there
}

// --- A handle --------------------------------------------------------------------------------------------------------

FakeHandle::FakeHandle(FakeEnsemble& ensemble, Executor& client, int process, const Options& options,
                       Listener& listener)
    : ensemble_(ensemble),
      client_(client),
      process_(process),
      asked_(options.session_timeout),
      host_(options.hosts.empty() ? "" : options.hosts.front().name),
      answered_from_(saturating_add(client.now(), ensemble.answers_after)),
      answer_timer_(client),
      connect_timer_(client),
      silence_timer_(client),
      late_timer_(ensemble.executor_),
      listener_(&listener) {
  ++ensemble_.dialled;
  ensemble_.dialled_first.push_back(host_);
  ensemble_.handles_.push_back(this);
  post([this] {
    if (!connected_) connect();
  });
  if (ensemble_.answers_after > std::chrono::milliseconds(0))
    answer_timer_.arm(answered_from_, [this] {
      if (!connected_) connect();
    });
}

FakeHandle::~FakeHandle() {
  if (listener_ != nullptr) {
    ++ensemble_.closed;
    ++ensemble_.dropped;
  }
  ensemble_.forget(*this);
  if (connected_ && !silent_) ensemble_.end_session(session_);
}

}  // namespace dlock::zookeeper
